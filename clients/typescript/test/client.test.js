/** What a client does beyond the cases that all clients share. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { connect, fake, Problem } from "../dist/index.js";
import { Daemon, Directory, until } from "./support.js";

const TRACE = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
const INVALID_TRACES = [`ff${TRACE.slice(2)}`, TRACE.replace(/-.{32}-/, `-${"0".repeat(32)}-`), TRACE.replace(/-.{16}-/, `-${"0".repeat(16)}-`)];
const bash = (command, id) => ({ name: "Bash", input: { command }, id });

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

describe("a client", () => {
  const directory = new Directory();
  const daemon = new Daemon(directory);
  before(() => daemon.start());
  after(async () => {
    await daemon.kill();
    directory.remove();
  });

  for (const door of ["lines", "socket", "url"]) {
    test(`sends a thousand events at the same time, ${door}`, async () => {
      const yard = await connect(daemon.addresses()[door]);
      const ask = (_, number) => yard.beforeToolDispatch({ run: `many-${number}`, tool: bash(number % 2 ? "ls" : "curl x") });
      const outcomes = await Promise.all(Array.from({ length: 1000 }, ask));
      outcomes.forEach(({ verdict }, number) => assert.equal(verdict, number % 2 ? "allow" : "ask"));
      yard.close();
    });

    test(`sends sixteen megabytes, and is told if that is too much, ${door}`, async () => {
      const yard = await connect(daemon.addresses()[door]);
      const sent = (bytes) => yard.beforeToolDispatch({ run: "large", tool: { name: "Read", input: { text: "\u2028".repeat(bytes / 3) } } });
      const outcome = await sent((16 << 20) - 1024);
      assert.deepEqual([outcome.verdict, outcome.problem], ["proceed", undefined]);
      assert.equal((await sent(17 << 20)).problem.code, "too_large");
      assert.equal((await yard.agentStopping({ run: "large" })).problem, undefined);
      yard.close();
    });

    test(`changes no number and no letter, ${door}`, async () => {
      const yard = await connect(daemon.addresses()[door]);
      const sent = (name, input) => yard.beforeToolDispatch({ run: "exact", tool: { name, input } });
      assert.deepEqual((await sent("Integer", { keep: 2n ** 70n })).payload, { keep: 2n ** 70n, n: 12345678901234567890n });
      assert.equal((await sent("Decimal", {})).problem.code, "bad_answer");
      assert.deepEqual((await sent("Read", { letters: "\0\u2028\u0085😀" })).payload, { letters: "\0\u2028\u0085😀" });
      for (const none of [NaN, -Infinity, "\ud800"]) assert.equal((await sent("Read", { none })).verdict, "block");
      yard.close();
    });

    test(`cancels an event and its hooks, ${door}`, async () => {
      const yard = await connect(daemon.addresses()[door]);
      const run = `cancelled-${door}`;
      const slow = (options) => yard.beforeToolDispatch({ run, tool: { name: "Slow", input: {} } }, options);
      const stop = new AbortController();
      const cancelled = slow({ signal: stop.signal });
      setTimeout(() => stop.abort(new Error("enough")), 100);
      await assert.rejects(cancelled, /enough/);
      await assert.rejects(slow({ signal: stop.signal }), /enough/);
      assert.equal((await slow({ timeoutMs: 100 })).problem.code, "timeout");
      // Events of a run take turns: this one would wait for a minute.
      assert.equal((await yard.beforeToolDispatch({ run, tool: bash("ls") })).verdict, "allow");
      yard.close();
    });

    test(`outlives a daemon that is killed, ${door}`, async () => {
      const own = new Directory();
      const killed = new Daemon(own);
      await killed.start();
      const yard = await connect({ ...killed.addresses()[door], retryForMs: 60_000 });
      const ask = (id) => yard.beforeToolDispatch({ run: "killed", id, tool: bash("ls") });
      assert.equal((await ask()).verdict, "allow");
      await killed.kill();
      const asked = door === "url" ? undefined : ask("again");
      await killed.start();
      // The port is another one.
      if (door !== "url") assert.equal((await asked).verdict, "allow");
      await killed.kill();
      const problem = (await yard.agentStopping({ run: "killed" }, { retryForMs: 0 })).problem;
      assert.deepEqual([problem.code, problem.retry], ["down", "safe"]);
      yard.close();
      own.remove();
    });

    test(`has no answers once it is closed, ${door}`, async () => {
      const yard = await connect(daemon.addresses()[door]);
      const open = yard.beforeToolDispatch({ run: `closed-${door}`, tool: { name: "Slow", input: {} } });
      setTimeout(() => yard.close(), 100);
      assert.equal((await open).problem.code, "closed");
      assert.equal((await yard.agentStopping({ run: "r" })).problem.code, "closed");
    });

    test(`keeps no process alive, ${door}`, async () => {
      const program = `
        import { connect } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
        const yard = await connect(${JSON.stringify(daemon.addresses()[door])});
        console.log((await yard.agentStopping({ run: "short" })).verdict);`;
      const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
      assert.equal(stdout, "proceed\n");
    });
  }

  test("is told what is wrong with a token", async () => {
    const yard = await connect({ url: daemon.url, token: "secret-of-nobody" });
    const { verdict, problem, reason } = await yard.agentStopping({ run: "r" });
    assert.deepEqual([verdict, problem.code], ["block", "unauthorized"]);
    assert(!reason.includes("secret-of-nobody"), reason);
    assert.equal((await (await connect({ url: daemon.url, token: "a\nb" })).agentStopping({ run: "r" })).verdict, "block");
  });

  test("asks no daemon in a directory that others can write to", async () => {
    chmodSync(directory.path, 0o777);
    for (const door of ["lines", "socket"]) {
      const yard = await connect(daemon.addresses()[door]);
      assert.equal((await yard.agentStopping({ run: "r" })).problem.code, "untrusted_socket");
    }
    chmodSync(directory.path, 0o700);
  });
});

describe("a client with a server of the test", () => {
  const directory = new Directory();
  after(() => directory.remove());

  /** Answers each line with `answers(line, socket)`, and counts connections. */
  const lines = async (name, answers) => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.unref().on("error", () => {});
      server.count = (server.count ?? 0) + 1;
      createInterface({ input: socket }).on("error", () => {}).on("line", (line) => answers(JSON.parse(line), socket));
    });
    await new Promise((listening) => server.unref().listen(`${directory.path}/${name}`, listening));
    return server;
  };
  const proceed = { decision_id: "d", event: "agent_stopping", verdict: "proceed", suppress_output: false, hooks: [], snapshot_version: 1 };
  const answer = ({ id }, socket) => socket.write(`${JSON.stringify({ id, outcome: proceed })}\n`);

  test("sends a valid trace context, and no other", async () => {
    const seen = [];
    const server = await lines("trace", (line, socket) => (seen.push(line.headers), answer(line, socket)));
    const http = createHttpServer((request, response) => (seen.push(request.headers.traceparent), response.end(JSON.stringify(proceed))));
    await new Promise((listening) => http.unref().listen(`${directory.path}/trace-http`, listening));
    for (const address of [{ lines: `${directory.path}/trace` }, { socket: `${directory.path}/trace-http` }]) {
      const yard = await connect({ ...address, traceparent: () => TRACE });
      await yard.agentStopping({ run: "r" });
      for (const traceparent of ["00-bad\r\nhost: x", ...INVALID_TRACES]) await yard.agentStopping({ run: "r" }, { traceparent });
      yard.close();
    }
    const none = Array(4).fill(undefined);
    assert.deepEqual(seen, [{ traceparent: TRACE }, ...none, TRACE, ...none]);
    server.close();
    http.close();
  });

  test("uses one connection of lines, until the daemon drains it", async () => {
    const waiting = [];
    const server = await lines("drain", (line, socket) => {
      if (line.event.run_id !== "r") waiting.push([line, socket]);
      else answer(line, socket);
    });
    const yard = await connect({ lines: `${directory.path}/drain` });
    const first = yard.agentStopping({ run: "first" });
    const late = yard.agentStopping({ run: "late" }, { timeoutMs: 100 });
    for (let run = 0; run < 5; run++) await yard.agentStopping({ run: "r" });
    assert.equal(server.count, 1);
    waiting[0][1].write('{"draining":true}\n');
    await until(async () => {
      assert.equal((await yard.agentStopping({ run: "r" })).problem, undefined);
      return server.count === 2;
    });
    // There is no line of the host any more that could cancel it.
    assert.equal((await late).problem.code, "timeout");
    answer(...waiting[0]);
    assert.equal((await first).problem, undefined);
    yard.close();
    server.close();
  });

  test("keeps connections of HTTP", async () => {
    let count = 0;
    const http = createHttpServer((_, response) => response.end(JSON.stringify(proceed))).on("connection", () => count++);
    await new Promise((listening) => http.unref().listen(`${directory.path}/kept`, listening));
    const yard = await connect({ socket: `${directory.path}/kept` });
    for (let run = 0; run < 5; run++) assert.equal((await yard.agentStopping({ run: "r" })).problem, undefined);
    assert.equal(count, 1);
    yard.close();
    http.close();
  });

  test("keeps no more than a bound of what a daemon does not read", async () => {
    let socket;
    const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (accepted) => (socket = accepted.unref()));
    await new Promise((listening) => server.unref().listen(`${directory.path}/unread`, listening));
    const yard = await connect({ lines: `${directory.path}/unread`, onProblem: () => {} });
    const inUse = () => {
      collectGarbage();
      return process.memoryUsage().heapUsed + process.memoryUsage().external;
    };
    const before = inUse();
    const asks = async (_, number) => (await yard.promptSubmitted({ run: "r", prompt: `${number}`.padEnd(1 << 20) }, { timeoutMs: 500, ifDown: "allow" })).problem.code;
    assert.deepEqual(new Set(await Promise.all(Array.from({ length: 150 }, asks))), new Set(["timeout"]));
    const grown = inUse() - before;
    assert(grown < 80 << 20, `${grown} bytes are kept`);
    const last = yard.agentStopping({ run: "last" }, { timeoutMs: 20_000 });
    createInterface({ input: socket }).on("line", (text) => {
      const line = JSON.parse(text);
      if (line.event?.run_id === "last") answer(line, socket);
    });
    assert.equal((await last).problem, undefined);
    yard.close();
    server.close();
  });

  test("gives up an answer without an end", async () => {
    const server = await lines("endless", (_, socket) => {
      const more = () => socket.writable && socket.write("x".repeat(1 << 20), more);
      more();
    });
    const yard = await connect({ lines: `${directory.path}/endless` });
    const { problem } = await yard.agentStopping({ run: "r" });
    assert.match(problem.message, /longer than/);
    yard.close();
    server.close();
  });
});

describe("options", () => {
  test("that are none are refused", async () => {
    const event = { run: "r" };
    for (const options of [
      { ifDown: "alow" }, { timeoutMs: 0 }, { timeoutMs: NaN }, { retryForMs: -1 }, { lines: "a", socket: "b" }, { token: "t" }, { url: "nowhere" }, { url: "ftp://host" },
    ]) {
      await assert.rejects(connect(options), TypeError, JSON.stringify(options));
    }
    await assert.rejects(fake().agentStopping(event, { ifDown: "maybe" }), TypeError);
    assert.throws(() => fake({ before_tool_dispach: {} }), TypeError);
  });

  test("of an event come before those of the client", async () => {
    const yard = await connect({ socket: "/nowhere/hookyard.sock", ifDown: "block", retryForMs: 0, onProblem: () => {} });
    assert.equal((await yard.agentStopping({ run: "r" })).verdict, "block");
    assert.equal((await yard.agentStopping({ run: "r" }, { ifDown: "allow" })).verdict, "proceed");
    assert.equal((await yard.agentStopping({ run: "r" }, { ifDown: undefined })).verdict, "block");
  });

  test("an event that goes on without a verdict is never silent", async () => {
    const warned = new Promise((resolve) => process.once("warning", resolve));
    await (await connect({ socket: "/nowhere/hookyard.sock", ifDown: "allow" })).agentStopping({ run: "r" });
    assert.match((await warned).message, /no daemon answers at \/nowhere/);
  });
});

describe("an event", () => {
  class Secret {
    command = "ls";
    #command = "rm -rf /";
    toString = () => this.#command;
  }
  const read = (value) => ({ toJSON: () => value });
  const own = Object.assign([1], { toJSON: () => [2] });
  const cycle = {};
  cycle.part = cycle;
  for (const [part, where, what] of [
    [{ of: new Map([["command", "rm -rf /"]]) }, ".of", "Map"],
    [new Set(["rm -rf /"]), "", "Set"],
    [[{}, { f() {} }], "[1].f", "a function"],
    [{ s: Symbol("s") }, ".s", "a symbol"],
    [new (class Lies { toJSON = () => "ls" })(), "", "Lies"],
    [{ a: { "b c": read("ls") } }, '.a["b c"].toJSON', "a function"],
    [own, "", "an array with a JSON form of its own"],
    [new Secret(), "", "Secret"],
    [Object.create({ command: "rm -rf /" }), "", "Object"],
    [Object.create(Map.prototype), "", "Map"],
    [/rm/, "", "RegExp"],
    [new Error("rm"), "", "Error"],
    [Promise.resolve(1), "", "Promise"],
    [new ArrayBuffer(1), "", "ArrayBuffer"],
    [new Float64Array([1]), "", "Float64Array"],
    [new Date(NaN), "", "Date"],
    [new String("rm"), "", "String"],
    [{ n: -Infinity }, undefined, "-Infinity"],
    [{ n: [1n, NaN] }, undefined, "NaN"],
    [cycle, undefined, "circular"],
  ]) {
    test(`is not sent with ${what}${where ? ` at ${where}` : ""}`, async () => {
      const yard = fake({}, { onProblem: () => {} });
      for (const ifDown of ["block", "allow"]) {
        const { verdict, problem } = await yard.beforeToolDispatch({ run: "r", tool: { name: "Bash", input: part } }, { ifDown });
        assert.deepEqual([verdict, problem?.code], [ifDown === "block" ? "block" : "proceed", "bad_event"]);
        assert(problem.message.includes(what) && problem.message.includes(where === undefined ? "" : `: tool_input${where} is `), problem.message);
      }
      assert.deepEqual(yard.events, []);
    });
  }

  test("has the JSON form of what has one", async () => {
    const yard = fake();
    const date = new Date(0);
    const other = runInNewContext("({ list: [1], date: new Date(0) })");
    for (const [given, sent] of [
      [{ a: undefined, b: [undefined, null, true] }, { b: [null, null, true] }],
      [[date, new URL("http://host/path")], ["1970-01-01T00:00:00.000Z", "http://host/path"]],
      [[new Uint8Array([7]), Buffer.from([7])], [{ 0: 7 }, { type: "Buffer", data: [7] }]],
      [Object.assign(Object.create(null), { a: "null" }), { a: "null" }],
      [other, { list: [1], date: "1970-01-01T00:00:00.000Z" }],
      [{ big: 2n ** 70n, n: -0.5, s: "NaN" }, { big: 2n ** 70n, n: -0.5, s: "NaN" }],
    ]) {
      const outcome = await yard.beforeToolDispatch({ run: "r", tool: { name: "Bash", input: given } });
      assert.equal(outcome.problem, undefined, outcome.reason);
      assert.equal(outcome.payload, given);
      assert.deepEqual(yard.events.at(-1).tool_input, sent);
    }
  });
});

describe("a fake", () => {
  test("answers as a test says, and keeps the events", async () => {
    const yard = fake({
      before_tool_dispatch: ({ tool_input }) => (tool_input.command === "rm" ? { verdict: "block", reason: "no" } : { patched: { tool_input: { command: "ls" } } }),
    });
    assert.equal((await yard.beforeToolDispatch({ run: "r", tool: bash("rm") })).reason, "no");
    assert.deepEqual((await yard.beforeToolDispatch({ run: "r", tool: bash("dir") })).payload, { command: "ls" });
    assert.equal((await yard.agentStopping({ run: "r" })).verdict, "proceed");
    assert.deepEqual(yard.events.map(({ event }) => event), ["before_tool_dispatch", "before_tool_dispatch", "agent_stopping"]);
  });

  test("can be down, and say what is no verdict", async () => {
    const away = () => {
      throw new Problem("down", "away", "wait", "safe");
    };
    const yard = fake({ agent_stopping: away, notification: { verdict: "perhaps" } });
    assert.equal((await yard.agentStopping({ run: "r" })).problem.code, "down");
    assert.equal((await yard.notification({ run: "r" })).problem.code, "unknown_verdict");
  });
});

describe("the SDK of workers", () => {
  test("serves events in each mode", async () => {
    const program = `
      import { serve } from ${JSON.stringify(new URL("../dist/worker.js", import.meta.url).href)};
      await serve(({ tool_name }) => ({ reason: tool_name }));`;
    const serve = (HOOKYARD_WORKER, given) =>
      promisify((callback) => {
        const child = execFile(process.execPath, ["--input-type=module", "-e", program], { env: { HOOKYARD_WORKER }, timeout: 60_000 }, callback);
        child.stdin.end(given);
      })();
    const event = '{"id":"7","envelope":{"tool_name":"Bash"}}\n';
    assert.equal(await serve("1", event), '{"hookyard":1,"multiplex":true}\n{"id":"7","output":{"reason":"Bash"}}\n');
    assert.equal(await serve("", '{"tool_name":"Bash"}'), '{"reason":"Bash"}');
  });
});
