// What makes one command dangerous: judge() looks at a command's words and says why it must not run,
// or returns undefined. The guard takes the line apart and calls it for every command in it.

import { posix } from 'node:path';

const SHELLS = /^((ba|da|k|z|a)?sh|su)$/;
const INTERPRETERS = /^((ba|da|k|z|a)?sh|python[\d.]*|node|perl|ruby|php)$/;
const DOWNLOADED = /([$<]\(|`)\s*(curl|wget|fetch)\b/;
const SYSTEM_DIRECTORY =
  /^\/(\{.*|bin|boot|dev|etc|home|lib|lib64|opt|proc|root|run|sbin|srv|sys|usr|var|Users|(home|Users)\/[^/]+)?$/;
const DEVICE = /^\/dev\/(?!(null|zero|full|std(in|out|err)|tty.*|pts\/\d+|fd\/\d+|shm\/.*)$)/;

export const nameOf = (run) => posix.basename(run[0] ?? '');
export const isDownload = (run) => /^(curl|wget|fetch)$/.test(nameOf(run));
export const isDevice = (path) => DEVICE.test(posix.normalize(path));

export function resolved(path, base) {
  const withoutHome = path.replace(/^(~[\w-]*|\$HOME|\$\{HOME\})(?=\/|$)/, '/home/~');
  return posix.resolve(base, withoutHome.replace(/^\$(PWD|\{PWD\})(?=\/|$)/, base));
}

// `/*`, `/.*` and `/*/*` all mean `/`.
const withoutGlobs = (path) => path.replace(/(\/[*?.]+)+$/, '') || '/';

// `place` is { base, workspace, upstream, findDanger }: the directory the command runs in, the workspace's
// root, the commands that feed its stdin, and how to look into a command line that it would run.
export function judge(run, place) {
  const [, ...args] = run;
  const paths = args.filter((arg) => !arg.startsWith('-'));
  switch (nameOf(run)) {
    case 'rm':
      return recursive(run, /^(-[a-z]*r|--r)/i, paths.find((path) => isSystem(path, place) || holdsWorkspace(path, place)));
    case 'chmod':
    case 'chown':
    case 'chgrp':
      return recursive(run, /^(-[a-zA-Z]*R|--rec)/, paths.find((path) => isSystem(path, place)));
    case 'find':
      if (!args.some((arg) => /^(-delete|rm)$/.test(arg)) || args.some((arg) => /^-i?(name|path|regex)$/.test(arg))) return undefined;
      return paths.some((path) => isSystem(path, place)) ? 'find would delete a system directory' : undefined;
    case 'dd':
      return args.some((arg) => arg.startsWith('of=') && isDevice(arg.slice(3))) ? 'dd would overwrite a device' : undefined;
    case 'eval':
    case 'source':
    case '.':
      return judgeScript(args.join(' '), place);
    default:
      if (/^(mkfs|mke2fs|wipefs)(\.|$)/.test(nameOf(run))) return `${nameOf(run)} wipes a file system`;
      return DOWNLOADED.test(run[0]) ? 'it runs a download unseen' : judgeInterpreter(run, args, place);
  }
}

function recursive(run, flag, target) {
  if (run.includes('--no-preserve-root')) return 'it switches off the protection of /';
  return target && run.some((arg) => flag.test(arg)) ? `${nameOf(run)} would go through all of ${target}` : undefined;
}

const isSystem = (path, { base }) => SYSTEM_DIRECTORY.test(withoutGlobs(resolved(path, base)));
const holdsWorkspace = (path, { base, workspace }) => `${workspace}/`.startsWith(`${withoutGlobs(resolved(path, base))}/`);

const judgeScript = (script, { base, findDanger }) =>
  DOWNLOADED.test(script) ? 'it runs a download unseen' : findDanger(script, base);

function judgeInterpreter(run, args, place) {
  const flag = args.findIndex((arg) => /^-[a-z]*c$/.test(arg));
  if (SHELLS.test(nameOf(run)) && flag !== -1) return judgeScript(args[flag + 1] ?? '', place);
  if (!INTERPRETERS.test(nameOf(run))) return undefined;
  if (args[0]?.startsWith('<(') && DOWNLOADED.test(args[0])) return 'it runs a download unseen';
  const readsStdin = args.every((arg) => arg.startsWith('-')) || args.some((arg) => /^(-[a-z]*s|\/dev\/stdin)$/.test(arg));
  if (!readsStdin) return undefined;
  if (place.upstream.some(isDownload)) return 'it runs a download unseen';
  const printed = place.upstream.find((words) => /^(echo|printf)$/.test(nameOf(words)));
  return printed && judgeScript(printed.slice(1).join(' '), place);
}
