// Serves one hook function in all three modes: oneshot, prespawn and worker.
//
//     import { serve } from "./hookyard-worker.mjs";
//     serve((envelope, signal) => (isBad(envelope) ? { decision: "block", reason: "no" } : undefined));
//
// The function gets the envelope and returns the output object, or nothing for no opinion; it may be async. An
// exception is the hook's failure. In worker mode many calls may be under way at once in one process; `signal` is
// aborted when nobody waits for the answer any more. What the function logs goes to standard error.

const LONGEST_ERROR = 500;

export async function serve(hook) {
  if (process.env.HOOKYARD_WORKER === "1") await serveAll(hook);
  else await serveOne(hook);
}

async function serveOne(hook) {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  const output = await hook(JSON.parse(Buffer.concat(chunks).toString()), new AbortController().signal);
  if (output) process.stdout.write(JSON.stringify(output));
}

async function serveAll(hook) {
  // Standard output belongs to the protocol; a stray console.log goes to the log instead.
  console.log = console.info = console.debug = console.error;
  const open = new Map();
  const send = (message) => process.stdout.write(JSON.stringify(message) + "\n");
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
  for await (const line of lines(process.stdin)) receive(JSON.parse(line));
  process.exit();
}

// Not `readline`: that ends a line at U+2028 too, which may stand within a JSON text.
async function* lines(stream) {
  let parts = [];
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      yield Buffer.concat([...parts, chunk.subarray(start, end)]).toString();
      parts = [];
      start = end + 1;
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  }
}
