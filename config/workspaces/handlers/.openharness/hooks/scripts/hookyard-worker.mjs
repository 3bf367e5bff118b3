// Serves one hook function in all three modes: oneshot, prespawn and worker.
//
//     import { serve } from "./hookyard-worker.mjs";
//     serve((envelope, signal) => (isBad(envelope) ? { decision: "block", reason: "no" } : undefined));
//
// The function gets the envelope and returns the output object, or nothing if it has no opinion; it may be async. If it
// throws, the hook fails. In worker mode one process may run many calls at the same time; `signal` is aborted when
// nobody waits for the answer any more. Whatever the function logs goes to standard error.

import { readFile } from "node:fs";

const LONGEST_ERROR = 500;

export async function serve(hook) {
  if (process.env.HOOKYARD_WORKER === "1") await serveAll(hook);
  else await serveOne(hook);
}

async function serveOne(hook) {
  // Modules that load on first use are loaded before the event comes, because a spare process has the time. For the same
  // reason standard input is read as a file and not as a stream.
  const { stdout } = process;
  const { signal } = new AbortController();
  const output = await hook(JSON.parse(await input()), signal);
  if (output) stdout.write(JSON.stringify(output));
}

async function serveAll(hook) {
  // Standard output carries the protocol, so console.log writes to standard error.
  console.log = console.info = console.debug = console.error;
  const { stdin, stdout } = process;
  const open = new Map();
  const send = (message) => stdout.write(JSON.stringify(message) + "\n");
  const receive = (message) => {
    if ("ping" in message) send({ pong: 1 });
    else if ("cancel" in message) open.get(message.cancel)?.abort();
    else if ("envelope" in message) answer(message);
  };
  const answer = async ({ id, envelope }) => {
    const abort = new AbortController();
    open.set(id, abort);
    try {
      send({ id, output: (await hook(envelope, abort.signal)) ?? {} });
    } catch (error) {
      send({ id, error: String(error).slice(0, LONGEST_ERROR) });
    }
    open.delete(id);
  };
  send({ hookyard: 1, multiplex: true });
  stdin.on("data", lines((line) => receive(JSON.parse(line))));
  await new Promise((resolve, reject) => stdin.once("end", resolve).once("error", reject));
  process.exit();
}

function input() {
  return new Promise((resolve, reject) => {
    readFile(0, "utf8", (error, text) => (error ? reject(error) : resolve(text)));
  });
}

// Not `readline`, which also ends a line at U+2028, a character that JSON texts may contain.
function lines(take) {
  let parts = [];
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      parts.push(chunk.subarray(start, end));
      const line = parts.length > 1 ? Buffer.concat(parts) : parts[0];
      parts = [];
      start = end + 1;
      take(line.toString());
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  };
}
