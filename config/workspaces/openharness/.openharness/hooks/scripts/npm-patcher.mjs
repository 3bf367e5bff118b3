#!/usr/bin/env node
// Adds --ignore-scripts to every `npm install` (and i, add, ci, update) of a shell command,
// so that a package cannot run code of its own while it is being installed.

import { answer, readEnvelope } from './lib/envelope.mjs';
import { commandStart, splitCommands } from './lib/shell-words.mjs';

const INSTALLS = new Set(['install', 'i', 'add', 'ci', 'update', 'up']);
const PREFIXES = new Set(['sudo', 'env', 'command', 'exec', 'nohup']);
const FLAGS_WITH_VALUE = new Set(['--prefix', '-C', '--workspace', '-w', '--registry']);
const FLAG = '--ignore-scripts';

// The end of the subcommand word in the line, or undefined if this command installs nothing.
function insertionPoint({ words }) {
  const texts = words.map((word) => word.text);
  let at = commandStart(texts);
  while (PREFIXES.has(texts[at])) {
    at += 1;
    while (texts[at]?.startsWith('-')) at += 1;
    at += commandStart(texts.slice(at));
  }
  if (texts[at] !== 'npm' || texts.some((text) => text.startsWith(FLAG))) return undefined;
  at += 1;
  while (texts[at]?.startsWith('-')) at += FLAGS_WITH_VALUE.has(texts[at]) ? 2 : 1;
  return INSTALLS.has(texts[at]) ? words[at].end : undefined;
}

function patched(line) {
  const points = splitCommands(line).map(insertionPoint).filter((point) => point !== undefined);
  // From the back, so that the earlier places stay right.
  return points.reduceRight((text, at) => `${text.slice(0, at)} ${FLAG}${text.slice(at)}`, line);
}

const envelope = await readEnvelope('npm-patcher');
const command = envelope.tool_input?.command;
if (typeof command === 'string' && patched(command) !== command) {
  answer({
    hookSpecificOutput: {
      hookEventName: 'before_tool_dispatch',
      additionalContext: `Packages are installed with ${FLAG} in this project; run a needed build step by hand.`,
      patch: { tool_input: { command: patched(command) } },
    },
  });
}
