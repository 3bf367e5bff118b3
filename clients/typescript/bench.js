/**
 * Measures a round trip over the door of lines beside that of bare lines of JSON to an echo in Node, alternating.
 *
 *   node bench.js SOCKET    the socket of lines of a daemon without hooks for the tool `Read`
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as open, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connect } from "./dist/index.js";

const ROUNDS = 15;
const EVENTS = 2_000;
const AT_ONCE = 64;

const [, file, target, mode] = process.argv;
const input = { command: "x".repeat(200) };

/** A connection that sends lines and gets them back. */
function bareLines(path) {
  const waiting = new Map();
  let [last, rest] = [0, ""];
  const socket = open(path).setEncoding("utf8");
  socket.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const answer = JSON.parse(line);
      waiting.get(answer.id)(answer);
      waiting.delete(answer.id);
    }
  });
  const ask = (event) =>
    new Promise((resolve) => {
      waiting.set(++last, resolve);
      socket.write(JSON.stringify({ id: last, event }) + "\n");
    });
  return { ask, end: () => socket.end() };
}

function echo(path) {
  const server = createServer((socket) => {
    let rest = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const line of lines) socket.write(JSON.stringify(JSON.parse(line)) + "\n");
    });
  });
  server.listen(path, () => process.send("ready"));
}

/** Microseconds for each event. */
async function measure(ask, atOnce) {
  const start = performance.now();
  let left = EVENTS;
  const work = async () => {
    while (left-- > 0) await ask();
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return ((performance.now() - start) * 1000) / EVENTS;
}

async function main() {
  const directory = mkdtempSync(join(tmpdir(), "hookyard-bench-"));
  const path = `${directory}/echo.sock`;
  const child = fork(file, [path, "echo"]);
  await once(child, "message");
  const bare = bareLines(path);
  const yard = await connect({ lines: target });
  const event = { event: "before_tool_dispatch", session_id: "r", run_id: "r", tool_name: "Read", tool_input: input };
  const floor = () => bare.ask(event);
  const client = async () => {
    const outcome = await yard.beforeToolDispatch({ run: "r", tool: { name: "Read", input } });
    if (outcome.problem) throw outcome.problem;
  };
  for (const atOnce of [1, AT_ONCE]) {
    const [floors, clients] = [[], []];
    for (let round = -3; round < ROUNDS; round++) {
      const pair = [await measure(floor, atOnce), await measure(client, atOnce)];
      if (round >= 0) floors.push(pair[0]), clients.push(pair[1]);
    }
    const median = (values) => values.sort((a, b) => a - b)[ROUNDS >> 1];
    const [a, b] = [median(floors), median(clients)];
    console.log(`${atOnce} at a time: ${b.toFixed(1)} µs; bare lines ${a.toFixed(1)} µs; ratio ${(b / a).toFixed(2)}`);
  }
  yard.close();
  bare.end();
  child.kill();
  rmSync(directory, { recursive: true });
}

if (mode === "echo") echo(target);
else await main();
