#!/usr/bin/env node
// Blocks shell commands that wreck a machine: recursive deletion of /, of a home or of the workspace itself,
// mkfs, writes to devices, fork bombs, downloads piped into a shell. It reads the command as a shell
// would, so spaces, quotes, sudo, `;` and `&&` do not fool it. A seat belt, not a sandbox.

import { posix } from 'node:path';
import { isDevice, judge, nameOf, resolved } from './lib/dangers.mjs';
import { readEnvelope } from './lib/envelope.mjs';
import { commandStart, splitCommands } from './lib/shell-words.mjs';

const WRAPPERS = /^(sudo|doas|env|command|builtin|exec|nohup|nice|ionice|timeout|setsid|stdbuf|xargs|busybox|time)$/;
// f() { f | f & }: a function that calls itself twice, in the background.
const FORK_BOMB = /(?:^| )(\S+) (?:\( \) )?\{ (?:.* )?\1 \|&? \1 & /;

// Every word list that may be what is run: behind a wrapper, each later word may be the command.
function runsOf({ words }) {
  const texts = words.map((word) => word.text);
  const rest = texts.slice(commandStart(texts));
  return WRAPPERS.test(nameOf(rest)) ? rest.map((_, skipped) => rest.slice(skipped)) : [rest];
}

function isForkBomb(commands) {
  // Encoded, so that a quoted operator or space is not taken for a real one.
  const encoded = ({ text }) => (text === '{' ? text : encodeURIComponent(text.toWellFormed?.() ?? text));
  const shape = commands.flatMap(({ words, operator }) => [...words.map(encoded), operator]);
  return FORK_BOMB.test(`${shape.filter(Boolean).join(' ')} `);
}

function findDangerIn(workspace) {
  return function findDanger(line, startDirectory) {
    const commands = splitCommands(line);
    if (isForkBomb(commands)) return 'it is a fork bomb';
    let base = startDirectory;
    let upstream = [];
    for (const command of commands) {
      if (command.redirects.some(isDevice)) return 'it would overwrite a device';
      for (const substitution of command.substitutions) {
        const danger = findDanger(substitution, base);
        if (danger) return danger;
      }
      const runs = runsOf(command);
      for (const run of runs) {
        const danger = run.length > 0 && judge(run, { base, workspace, upstream, findDanger });
        if (danger) return danger;
      }
      const [program, ...args] = runs[0] ?? [];
      if (program === 'cd') base = resolved(args.find((arg) => !arg.startsWith('-')) ?? '~', base);
      upstream = /^\|&?$/.test(command.operator) ? [...upstream, ...runs] : [];
    }
    return undefined;
  };
}

// An array is an argument vector: quoted, it reads as the one command it is.
const asLine = (command) =>
  Array.isArray(command) ? command.map((word) => `'${String(word).replace(/'/g, `'\\''`)}'`).join(' ') : command;

const envelope = await readEnvelope('dangerous-command-guard');
const line = asLine(envelope.tool_input?.command);
const workspace = posix.resolve(typeof envelope.cwd === 'string' ? envelope.cwd : '.');
const danger = typeof line === 'string' ? findDangerIn(workspace)(line, workspace) : undefined;
if (danger) {
  console.error(`dangerous command: ${danger}`);
  process.exitCode = 2;
}
