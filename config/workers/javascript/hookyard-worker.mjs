// Serves one hook function in all three modes: oneshot, prespawn and worker.
//
//     import { serve } from "./hookyard-worker.mjs"; // In the package hookyard-client, it is "hookyard-client/worker".
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
  let unsent = "";
  const flush = () => {
    const lines = unsent;
    unsent = "";
    if (lines) stdout.write(lines);
  };
  // One write for all answers of a turn of the event loop.
  const send = (line) => {
    if (!unsent) process.nextTick(flush);
    unsent += line + "\n";
  };
  const reply = (id, output) => {
    if (!output) return send(`{"id":${JSON.stringify(id)},"output":{}}`);
    send(JSON.stringify({ id, output }));
    // A verdict does not wait behind another event.
    flush();
  };
  const fail = (id, error) => send(JSON.stringify({ id, error: String(error).slice(0, LONGEST_ERROR) }));
  const finish = async (id, promise) => {
    try {
      reply(id, await promise);
    } catch (error) {
      fail(id, error);
    }
    open.delete(id);
  };
  // A call that has returned cannot be cancelled any more, so that the next one can have its controller. A function that
  // names its second parameter gets another for each call all the same, for what it may have begun.
  let unused;
  const answer = ({ id, envelope }) => {
    const abort = unused ?? new AbortController();
    unused = hook.length < 2 ? abort : undefined;
    try {
      const output = hook(envelope, abort.signal);
      if (typeof output?.then !== "function") return reply(id, output);
      unused = undefined;
      open.set(id, abort);
      finish(id, output);
    } catch (error) {
      fail(id, error);
    }
  };
  const receive = (message) => {
    if ("envelope" in message) answer(message);
    else if ("cancel" in message) open.get(message.cancel)?.abort();
    else if ("ping" in message) send('{"pong":1}');
  };
  send('{"hookyard":1,"multiplex":true}');
  stdin.setEncoding("utf8").on("data", lines((line) => receive(JSON.parse(line))));
  await new Promise((resolve, reject) => stdin.once("end", resolve).once("error", reject));
  // Once all answers are written.
  stdout.write("", () => process.exit());
}

function input() {
  return new Promise((resolve, reject) => {
    readFile(0, "utf8", (error, text) => (error ? reject(error) : resolve(text)));
  });
}

// Not `readline`, which also ends a line at U+2028, a character that JSON texts may contain.
function lines(take) {
  let rest = "";
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
      const line = rest + chunk.slice(start, end);
      rest = "";
      start = end + 1;
      take(line);
    }
    rest += chunk.slice(start);
  };
}
