/**
 * The adapters in their frameworks: every example with the cases that all adapters share, at a daemon and without one. The
 * frameworks are those of `package-lock.json`, which `scripts/clients` installs.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { connect, fake, Problem } from "../dist/index.js";
import { cases, Daemon, Directory, until } from "./support.js";

const TOKEN = "ghp_" + "a1B2".repeat(9);
const runTool = (command) => (command === "cat token" ? `token ${TOKEN}` : `ran ${command}`);
const away = () => {
  throw new Problem("down", "nobody is there", "start it", "safe");
};
const NONE = /hookyard gave no verdict: nobody is there/;
const text = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
const stripped = (code) => code.split("\n").map((line) => line.trim()).join("\n");

const directory = new Directory();
const daemon = new Daemon(directory, "frameworks");
before(() => daemon.start());
after(async () => {
  await daemon.kill();
  directory.remove();
});

const FRAMEWORKS = {
  "openai-agents": {},
  langchain: {},
  // The SDK asks again whether the approval was needed.
  "ai-sdk": { blockedLate: 'Tool "bash" does not require approval' },
  mcp: { lacks: ["model", "pause"] },
  // The tool is one of a server of MCP, and the run is the session.
  "claude-agent-sdk": { lacks: ["model", "pause", "place"], tool: "mcp__host__bash" },
};
for (const [name, { lacks = [], blockedLate = "not any more", tool = "bash" }] of Object.entries(FRAMEWORKS)) {
  describe(name, async () => {
    const { play } = await import(`../examples/${name}.js`);

    for (const { name: title, needs, turns, prompt, approve, ...expected } of cases("frameworks")) {
      if (lacks.includes(needs)) continue;
      test(title, async () => {
        const yard = await connect({ lines: daemon.lines });
        const place = { run: `${name} ${title}`, cwd: daemon.workspace };
        const played = await play(yard, turns, { prompt: prompt?.replace("TOKEN", TOKEN), approve, place, runTool });
        yard.close();
        const told = played.told.map((said, number) => (expected.told[number] === null ? null : said));
        assert.deepEqual([played.ran, told], [expected.ran, expected.told]);
        assert([expected.ended].flat().includes(played.ended), played.ended);
        assert(String(played.asked).includes(expected.asked ?? "") && !String(played.asked).includes(TOKEN), played.asked);
      });
    }

    test("the example is a program", () => {
      const program = fileURLToPath(new URL(`../examples/${name}.js`, import.meta.url));
      const env = { ...process.env, HOOKYARD_LISTEN_LINES: daemon.lines };
      const { stdout, stderr } = spawnSync(process.execPath, [program], { cwd: daemon.workspace, env, encoding: "utf8", timeout: 60_000 });
      assert.equal(stdout, "ran: ls\ntold:\n  this would remove everything\nremove one directory of the project\n  ran ls\n", stderr);
    });

    test("nothing runs and nothing is told without a verdict", async () => {
      const place = { run: "r" };
      for (const [kind, ran] of [["before_tool_dispatch", []], ["after_tool_dispatch", ["ls"]]]) {
        const yard = fake({ [kind]: away });
        const played = await play(yard, [["ls"]], { place, runTool });
        assert.deepEqual(played.ran, ran);
        // No output is reported of what did not run.
        assert.equal(yard.events.filter(({ event }) => event === "after_tool_dispatch").length, ran.length);
        assert.match(played.told[0], NONE);
        const allowed = await play(fake({ [kind]: away }, { ifDown: "allow", onProblem: () => {} }), [["ls"]], { place, runTool });
        assert.deepEqual([allowed.ran, allowed.told], [["ls"], ["ran ls"]]);
      }
      if (lacks.includes("model")) return;
      const played = await play(fake({ before_model_call: away }), [["ls"]], { place, runTool });
      assert.deepEqual(played.ran, []);
      assert.match(played.ended, NONE);
    });

    // Without a pause, a call is asked about once.
    if (!lacks.includes("pause")) test("what is blocked after a person agreed does not run", async () => {
      const verdicts = ["ask"];
      const yard = fake({ before_tool_dispatch: () => ({ verdict: verdicts.pop() ?? "block", reason: "not any more" }) });
      const played = await play(yard, [["ls"]], { place: { run: "r" }, approve: true, runTool });
      assert.deepEqual([played.ran, played.told, played.ended], [[], [blockedLate], "done"]);
    });

    test("events say what runs and which call it is", async () => {
      const yard = fake({ before_tool_dispatch: { patched: { tool_input: { command: "ls -l" } } } });
      await play(yard, [["ls"], ["ls"]], { place: { run: "run-7", session: "session-7" }, runTool });
      const places = new Set(yard.events.map((event) => `${event.run_id} ${event.session_id}`));
      assert.equal(places.size, 1);
      if (!lacks.includes("place")) assert.deepEqual([...places], ["run-7 session-7"]);
      const events = yard.events.filter(({ event }) => event.endsWith("_dispatch"));
      assert.equal(yard.events.some(({ event }) => event === "before_model_call"), !lacks.includes("model"));
      const [first, last] = [events[0], events.at(-1)];
      assert.deepEqual([first.event, first.tool_name, first.tool_input], ["before_tool_dispatch", tool, { command: "ls" }]);
      assert.deepEqual([last.event, last.tool_name, last.tool_input], ["after_tool_dispatch", tool, { command: "ls -l" }]);
      assert.match(JSON.stringify(last.tool_output), /ran ls -l/);
      // By this, hookyard recognises a call that is asked about twice.
      const asked = events.filter((event) => event.tool_call_id === first.tool_call_id && event.event === first.event);
      assert.deepEqual(asked, asked.map(() => first));
      const ids = new Set(events.map((event) => event.tool_call_id));
      assert(ids.size === 2 && !ids.has(undefined), [...ids].join());
    });

    test("the page shows what is tested", () => {
      const blocks = [...text("../../../docs/clients.md").matchAll(/\n```js\n([^]*?)\n```/g)].map(([, code]) => code);
      const shown = blocks.filter((code) => code.includes(`/adapters/${name}"`));
      assert.equal(shown.length, 1);
      const code = stripped(text(`../examples/${name}.js`));
      for (const part of shown[0].split("\n\n")) assert(code.includes(stripped(part)), part);
    });
  });
}

describe("openai-agents, beside the example", async () => {
  const { tool, webSearchTool } = await import("@openai/agents");
  const { z } = await import("zod");
  const { guarded } = await import("../dist/adapters/openai-agents.js");
  const { play } = await import("../examples/openai-agents.js");

  test("a call that asks only when it is about to run does not run", async () => {
    const verdicts = ["ask", "proceed"];
    const yard = fake({ before_tool_dispatch: () => ({ verdict: verdicts.pop(), reason: "changed" }) });
    const played = await play(yard, [["ls"]], { place: { run: "r" }, approve: true });
    assert.deepEqual([played.ran, played.told], [[], ["changed"]]);
  });

  test("a tool that nothing can stand before is refused", () => {
    assert.throws(() => guarded(fake(), [webSearchTool()], { run: "r" }), /function tools alone/);
  });

  test("an approval of its own stays with a tool", async () => {
    const needsApproval = async (_, { command }) => command === "own";
    const parameters = z.object({ command: z.string() });
    const [bash] = guarded(fake(), [tool({ name: "bash", description: "", parameters, needsApproval, execute: () => "" })], { run: "r" });
    const needs = (command) => bash.needsApproval({}, { command }, "1");
    assert.deepEqual([await needs("own"), await needs("ls")], [true, false]);
  });
});

describe("langchain, beside the example", async () => {
  const { Command, MemorySaver } = await import("@langchain/langgraph");
  const { AIMessage, createAgent, fakeModel, tool, ToolMessage } = await import("langchain");
  const { z } = await import("zod");
  const { hookyard } = await import("../dist/adapters/langchain.js");
  const config = { configurable: { thread_id: "1" } };

  /** An agent whose model calls `bash` with a command for each call, and what the model was told. */
  function agentOf(yard, commands, run) {
    const bash = tool(({ command }) => run(command), { name: "bash", description: "", schema: z.object({ command: z.string() }) });
    const model = fakeModel();
    model.respondWithTools(commands.map((command, number) => ({ name: "bash", args: { command }, id: `call-${number}` })));
    model.respond(new AIMessage("done"));
    const agent = createAgent({ model, tools: [bash], middleware: [hookyard(yard, { run: "r" })], checkpointer: new MemorySaver() });
    const told = (state) => state.messages.filter((message) => ToolMessage.isInstance(message)).map(({ content }) => content);
    const begin = () => agent.invoke({ messages: [{ role: "user", content: "go" }] }, config);
    return { begin, told, resume: (resume) => agent.invoke(new Command({ resume }), config) };
  }

  const command = () => new Command({ update: { messages: [new ToolMessage({ content: "said", tool_call_id: "call-0" })] } });
  const block = { verdict: "block", reason: "not for models" };
  const patch = (tool_output) => ({ patched: { tool_output } });
  const blocks = [{ type: "text", text: "changed" }];
  // What the tool returns, what hooks say, and what the model is told.
  for (const [title, returned, says, expected] of [
    ["a text that becomes an object", () => "said", patch({ changed: true }), '{"changed":true}'],
    ["a text that becomes a list", () => "said", patch([1]), "[1]"],
    ["a text that becomes blocks", () => "said", patch(blocks), blocks],
    ["a command", command, {}, "said"],
    ["a command that is blocked", command, block, "not for models"],
    ["a command that is changed", command, patch({}), "a hook changed what cannot be changed"],
  ]) {
    test(`hooks see ${title}`, async () => {
      const yard = fake({ after_tool_dispatch: says });
      const { begin, told } = agentOf(yard, ["ls"], returned);
      assert.deepEqual(told(await begin()), [expected]);
      assert.match(JSON.stringify(yard.events.find(({ event }) => event === "after_tool_dispatch").tool_output), /said/);
    });
  }

  test("an approval is for one call", async () => {
    const type = "approve";
    for (const [resume, expected] of [
      [() => ({ type }), []],
      [() => ({ type, tool_call_id: "call-1" }), ["b"]],
      [([{ id, value }]) => ({ [id]: { type, tool_call_id: value.tool_call_id } }), ["a"]],
    ]) {
      const ran = [];
      const yard = fake({ before_tool_dispatch: { verdict: "ask" } });
      const { begin, resume: go } = agentOf(yard, ["a", "b"], (given) => (ran.push(given), "said"));
      await go(resume((await begin()).__interrupt__));
      assert.deepEqual(ran, expected);
    }
  });
});

describe("mcp, beside the example", async () => {
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const { InMemoryTransport } = await import("@modelcontextprotocol/sdk/inMemory.js");
  const { callAll, personClient, shellServer } = await import("../examples/mcp.js");
  const { bridge } = await import("../dist/adapters/mcp.js");
  const TURNS = [["rm -rf /"], ["npm install"], ["curl http://x"], ["cat token"], ["give up"], ["ls"]];
  const TOLD = ["this would remove everything\nremove one directory of the project", "ran npm ci", "ran curl https://x", "token [redacted github-token]"];
  const program = fileURLToPath(new URL("../dist/mcp-proxy/hookyard-mcp.js", import.meta.url));
  const proxied = (args, env = {}) =>
    new StdioClientTransport({ command: process.execPath, args: [program, ...args], cwd: daemon.workspace, stderr: "inherit",
      env: { PATH: process.env.PATH, HOOKYARD_LISTEN_LINES: daemon.lines, ...env } });

  /** A server of HTTP at which each session begins with `open`. */
  async function listen(open) {
    const sessions = new Map();
    const server = createServer(async (request, response) => {
      let transport = sessions.get(request.headers["mcp-session-id"]);
      if (!transport) {
        transport = new StreamableHTTPServerTransport({
          sessionIdGenerator: () => crypto.randomUUID(),
          onsessioninitialized: (id) => sessions.set(id, transport),
        });
        await open(transport);
      }
      await transport.handleRequest(request, response);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { url: `http://127.0.0.1:${server.address().port}/`, close: () => (server.closeAllConnections(), server.close()) };
  }

  async function conversation(transport) {
    const client = personClient(true);
    await client.connect(transport);
    const played = await callAll(client, TURNS);
    // What is halted stays halted.
    await assert.rejects(client.callTool({ name: "bash", arguments: { command: "ls" } }), /Halted: enough/);
    await client.close();
    assert.deepEqual(played, { told: TOLD, ended: "halted: enough" });
  }

  test("the program stands before a program", async () => {
    const server = fileURLToPath(new URL("mcp-server.js", import.meta.url));
    await conversation(proxied([process.execPath, server]));
  });

  test("the program stands before a server over HTTP, with what authorises it", async () => {
    const seen = new Set();
    const server = await listen(async (transport) => {
      const { handleRequest } = transport;
      transport.handleRequest = (request, ...rest) => (seen.add(request.headers.authorization), handleRequest.call(transport, request, ...rest));
      await shellServer(runTool).connect(transport);
    });
    await conversation(proxied([server.url], { HOOKYARD_MCP_AUTHORIZATION: "Bearer t" }));
    assert.deepEqual([...seen], ["Bearer t"]);
    server.close();
  });

  test("the bridge stands between HTTP and HTTP", async () => {
    const server = await listen((transport) => shellServer(runTool).connect(transport));
    const yard = await connect({ lines: daemon.lines });
    const proxy = await listen(async (transport) => {
      const place = { run: crypto.randomUUID(), cwd: daemon.workspace };
      bridge(yard, place, transport, new StreamableHTTPClientTransport(new URL(server.url)));
    });
    await conversation(new StreamableHTTPClientTransport(new URL(proxy.url)));
    for (const { close } of [proxy, server]) close();
    yard.close();
  });

  test("the program ends with its client, and says how it is used", async () => {
    const server = fileURLToPath(new URL("mcp-server.js", import.meta.url));
    const run = (...args) => spawnSync(process.execPath, [program, ...args], { input: "", timeout: 60_000, encoding: "utf8" });
    assert.equal(run(process.execPath, server).status, 0);
    const usage = run("--help");
    assert.equal(usage.status, 2);
    assert.match(usage.stderr, /usage: hookyard-mcp \[OPTION…\] PROGRAM/);
  });

  test("what asks is blocked where the client can ask nobody", async () => {
    const { play } = await import("../examples/mcp.js");
    const yard = fake({ before_tool_dispatch: { verdict: "ask", reason: "it downloads something" } });
    assert.deepEqual(await play(yard, [["curl x"]]), { ran: [], told: ["it downloads something"], ended: "done" });
  });

  test("a call that is cancelled while a person thinks does not run", async () => {
    const [client, toClient] = InMemoryTransport.createLinkedPair();
    const [toServer, server] = InMemoryTransport.createLinkedPair();
    const [answers, arrived] = [[], []];
    client.onmessage = (message) => answers.push(message);
    server.onmessage = ({ method }) => arrived.push(method);
    const bridged = bridge(fake({ before_tool_dispatch: { verdict: "ask" } }), { run: "r" }, toClient, toServer);
    const send = (method, params, rest) => client.send({ jsonrpc: "2.0", method, params, ...rest });
    await send("initialize", { capabilities: { elicitation: {} } }, { id: 0 });
    await send("tools/call", { name: "bash" }, { id: 1 });
    await until(() => answers.length === 1);
    assert.equal(answers[0].method, "elicitation/create");
    await send("notifications/cancelled", { requestId: 1 });
    await client.send({ jsonrpc: "2.0", id: answers[0].id, result: { action: "accept" } });
    await until(() => answers.length === 2);
    assert.deepEqual([answers[1].id, "error" in answers[1], arrived], [1, true, ["initialize", "notifications/cancelled"]]);
    await client.close();
    await bridged;
  });

  test("raw messages cannot come past the hooks", async () => {
    const [client, toClient] = InMemoryTransport.createLinkedPair();
    const [toServer, server] = InMemoryTransport.createLinkedPair();
    const [answers, arrived] = [[], []];
    client.onmessage = (message) => answers.push(message);
    server.onmessage = (message) => arrived.push(message);
    let decide;
    const decision = new Promise((resolve) => (decide = resolve));
    const yard = fake();
    const { beforeToolDispatch } = yard;
    yard.beforeToolDispatch = async (event, options) => (await decision, beforeToolDispatch.call(yard, event, options));
    const bridged = bridge(yard, { run: "r" }, toClient, toServer);
    const call = (id, rest = {}) => client.send({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "bash", arguments: {}, ...rest } });
    await client.send({ jsonrpc: "2.0", id: 0, method: "initialize", params: {} });
    await call(1, { task: { ttl: 1 } });
    await call(1);
    await call(2);
    await client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } });
    decide();
    await until(() => answers.length === 2 && arrived.some(({ method }) => method === "tools/call"));
    const called = arrived.filter(({ method }) => method === "tools/call");
    assert.deepEqual(called.map(({ id, params }) => [id, "task" in params]), [[1, false]], "a task, a repeated and a cancelled call");
    assert.deepEqual(answers.map(({ id, error }) => [id, Boolean(error)]), [[1, true], [2, true]]);
    await server.send({ jsonrpc: "2.0", id: 0, result: { protocolVersion: "2025-11-25", capabilities: { tasks: {}, tools: {} } } });
    await server.send({ jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text: "ran" }] } });
    await until(() => answers.length === 4);
    assert.deepEqual(answers.slice(2).map(({ result }) => result.capabilities ?? result.content), [{ tools: {} }, [{ type: "text", text: "ran" }]]);
    assert.equal(yard.events.filter(({ event }) => event === "after_tool_dispatch").length, 1);
    await call(3);
    await until(() => arrived.some(({ id }) => id === 3));
    await client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 3 } });
    for (const id of [3, 4]) await server.send({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "ran" }] } });
    await client.send({ jsonrpc: "2.0", id: 3, method: "ping" });
    await until(() => arrived.at(-1).method === "ping");
    await server.send({ jsonrpc: "2.0", id: arrived.at(-1).id, result: {} });
    await until(() => answers.length > 4);
    assert.deepEqual(answers.slice(4), [{ jsonrpc: "2.0", id: 3, result: {} }], "what was cancelled, or that nobody asked");
    await client.close();
    await bridged;
  });

  test("an answer is that of its own call, whatever ids a client uses again and however a server writes them", async () => {
    const [client, toClient] = InMemoryTransport.createLinkedPair();
    const [toServer, server] = InMemoryTransport.createLinkedPair();
    const [answers, arrived] = [[], []];
    client.onmessage = ({ id, result, error }) => answers.push([id, result?.content[0].text ?? error.message]);
    server.onmessage = (message) => arrived.push(message);
    let hold;
    const yard = fake();
    const { afterToolDispatch } = yard;
    yard.afterToolDispatch = async (...given) => (await hold, afterToolDispatch.apply(yard, given));
    const bridged = bridge(yard, { run: "r" }, toClient, toServer);
    const call = async (id) => {
      const before = arrived.length;
      await client.send({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "bash" } });
      await until(() => arrived.length > before);
      return arrived.at(-1).id;
    };
    const cancel = (id) => client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
    const answer = (id, text) => server.send({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } });
    await answer(`${await call("one")}`, "as a text");
    await until(() => answers.length === 1);

    const cancelled = await call(7);
    await cancel(7);
    await until(() => arrived.at(-1).method === "notifications/cancelled");
    assert.equal(arrived.at(-1).params.requestId, cancelled);
    const again = await call(7);
    await answer(cancelled, "late");
    await answer(again, "in time");
    await until(() => answers.length === 2);

    let release;
    hold = new Promise((resolve) => (release = resolve));
    await answer(await call(8), "while hooks look at it");
    await cancel(8);
    hold = undefined;
    await answer(await call(8), "the second");
    await until(() => answers.length === 3);
    release();
    await answer(await call(9), "the last");
    await until(() => answers.length === 4);
    assert.deepEqual(answers, [["one", "as a text"], [7, "in time"], [8, "the second"], [9, "the last"]]);
    const ids = yard.events.map((event) => event.tool_call_id);
    assert.equal(new Set(ids).size, 6);
    // What was never asked for is nothing to cancel.
    const before = arrived.length;
    await cancel(99);
    await call(10);
    assert.equal(arrived.length, before + 1);
    await client.close();
    await bridged;
  });
});

describe("claude-agent-sdk, beside the example", async () => {
  const { play } = await import("../examples/claude-agent-sdk.js");
  const bash = (command) => ({ name: "Bash", input: { command, description: "a test" } });
  // The shell puts it together, so that it is in the output alone.
  const [SHOWN, FAILS] = [bash("echo SEC''RET"), bash("echo SEC''RET; exit 3")];
  const block = { verdict: "block", reason: "not for models" };
  const patch = (tool_output) => ({ patched: { tool_output } });
  const bare = { stdout: "", stderr: "", interrupted: false, isImage: false, noOutputExpected: false };
  const read = { name: "Read", input: { file_path: `${directory.path}/secret.txt` } };
  const write = { name: "Write", input: { file_path: `${directory.path}/new.txt`, content: "new" } };
  const UNFIT = /a hook changed the output into another form/;

  // What keeps an output from the model: the call, what hooks say, what the model is told, and the end.
  for (const [title, call, rules, said, end] of [
    ["a block", SHOWN, { after_tool_dispatch: block }, /^not for models$/, "done"],
    ["a block of several lines of a file", read, { after_tool_dispatch: { ...block, reason: "not\nthis" } }, /^1\tnot\n2\tthis$/, "done"],
    ["a halt", SHOWN, { after_tool_dispatch: { verdict: "halt", reason: "enough" } }, undefined, "halted: enough"],
    ["no verdict", SHOWN, { after_tool_dispatch: away }, NONE, "done"],
    ["a change", SHOWN, { after_tool_dispatch: patch({ ...bare, stdout: "changed" }) }, /^changed$/, "done"],
    ["a change into another form", SHOWN, { after_tool_dispatch: patch({}) }, UNFIT, "done"],
    ["a change without a key", SHOWN, { after_tool_dispatch: patch({ stdout: "changed", stderr: "" }) }, UNFIT, "done"],
    ["a change of a kind", read, { after_tool_dispatch: patch({ type: "no", file: {} }) }, UNFIT, "done"],
    ["a block of a failure", FAILS, { tool_failed: block }, undefined, "halted: not for models"],
    ["no verdict about a failure", FAILS, { tool_failed: away }, undefined, NONE],
    ["a block that the SDK cannot tell", write, { after_tool_dispatch: block }, undefined, "halted: not for models"],
  ]) {
    test(`${title} keeps an output from the model, in later prompts, too`, async () => {
      writeFileSync(read.input.file_path, `SEC${"RET"} of a file\n`);
      const played = await play(fake(rules), [[call]]);
      rmSync(write.input.file_path, { force: true });
      const later = await play(fake(rules), [[call]], { more: ["and then?", "/compact"] });
      for (const { asked } of [played, later]) assert(!asked.includes("SECRET"));
      assert(said === undefined ? played.told.length === 0 : said.test(played.told[0]), played.told[0]);
      assert(end instanceof RegExp ? end.test(played.ended) : end === played.ended, played.ended);
      // Of a session that is over, nothing more goes to the model.
      assert.equal(JSON.parse(later.asked).length > JSON.parse(played.asked).length, end === "done");
    });
  }

  test("a failure that hooks let pass is told", async () => {
    const yard = fake();
    const { told } = await play(yard, [[FAILS]]);
    assert.match(told[0], /^Exit code 3\nSECRET/);
    assert.equal(yard.events.find(({ event }) => event === "tool_failed").error, "Exit code 3\nSECRET");
  });

  test("an output that is withheld leaves the others of the turn alone", async () => {
    const yard = fake({ after_tool_dispatch: ({ tool_input }) => (tool_input.command === "ls" ? block : undefined) });
    assert.deepEqual((await play(yard, [["ls", "pwd"]], { runTool })).told, ["not for models", "ran pwd"]);
  });
});
