// Serves one hook function in all three modes: oneshot, prespawn and worker.
//
//     import { serve } from "./hookyard-worker.mjs";
//     serve((envelope, signal) => (isBad(envelope) ? { decision: "block", reason: "no" } : undefined));
//
// The function gets the envelope and returns the output object, or nothing for no opinion; it may be async. An
// exception is the hook's failure. In worker mode many calls may be under way at once in one process; `signal` is
// aborted when nobody waits for the answer any more. What the function logs goes to standard error.

import { readFile } from "node:fs";

const LONGEST_ERROR = 500;

export async function serve(hook) {
  if (process.env.HOOKYARD_WORKER === "1") await serveAll(hook);
  else await serveOne(hook);
}

async function serveOne(hook) {
  // Whatever is loaded at its first use is loaded before the event comes: a spare has the time for it.
  // For the same reason standard input is no stream here; nothing else has to wait for it to be read.
  const { stdout } = process;
  const { signal } = new AbortController();
  const output = await hook(JSON.parse(await input()), signal);
  if (output) stdout.write(JSON.stringify(output));
}

async function serveAll(hook) {
  // Standard output belongs to the protocol; a stray console.log goes to the log instead.
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

// Not `readline`: that ends a line at U+2028 too, which may stand within a JSON text.
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
