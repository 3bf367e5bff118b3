/**
 * The proxy of the Model Context Protocol as a server of streamable HTTP: clients and servers are those of the SDK in
 * `package-lock.json`, which `scripts/clients` installs, and the daemon is a real one.
 */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CreateMessageRequestSchema, LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

import { callAll, personClient, shellServer } from "../examples/mcp.js";
import { Daemon, Directory, until } from "./support.js";

const PROGRAM = fileURLToPath(new URL("../dist/mcp-proxy/hookyard-mcp.js", import.meta.url));
const SHELL = [process.execPath, fileURLToPath(new URL("mcp-server.js", import.meta.url))];
const TOKEN = "ghp_" + "a1B2".repeat(9);
const TURNS = [["rm -rf /"], ["npm install"], ["curl http://x"], ["cat token"], ["give up"], ["ls"]];
const TOLD = ["this would remove everything\nremove one directory of the project", "ran npm ci", "ran curl https://x", "token [redacted github-token]"];
const INITIALIZE = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "c", version: "1" } } };
const TYPES = { accept: "application/json, text/event-stream", "content-type": "application/json" };

const directory = new Directory();
const daemon = new Daemon(directory, "frameworks");
before(() => daemon.start());
after(async () => {
  await daemon.kill();
  directory.remove();
});

/** The proxy before a server, until the test ends. Its `log` is what it has said. */
async function listen(t, words, env = {}, options = ["--listen", "0"]) {
  const child = spawn(process.execPath, [PROGRAM, ...options, ...words], {
    cwd: daemon.workspace, stdio: ["ignore", "inherit", "pipe"],
    env: { PATH: process.env.PATH, HOOKYARD_LISTEN_LINES: daemon.lines, ...env },
  });
  const proxy = { child, log: "" };
  child.stderr.on("data", (data) => (proxy.log += data));
  await until(() => (proxy.url = /listening on (\S+)/.exec(proxy.log)?.[1]));
  t.after(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  return proxy;
}

/** A server over HTTP, with its sessions and the requests that came. */
async function remote(t, open) {
  const [sessions, seen] = [new Map(), []];
  const server = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    seen.push(`${request.method} ${id === undefined ? "none" : "session"} ${request.headers.authorization}`);
    if (id !== undefined && !sessions.has(id)) return response.writeHead(404).end();
    const transport = sessions.get(id) ?? new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (made) => sessions.set(made, transport),
      onsessionclosed: (ended) => sessions.delete(ended),
    });
    if (id === undefined) await open().connect(transport);
    await transport.handleRequest(request, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => (server.closeAllConnections(), server.close()));
  return { url: `http://127.0.0.1:${server.address().port}/`, sessions, seen };
}

const runTool = (command) => (command === "cat token" ? `token ${TOKEN}` : `ran ${command}`);
const text = async (client, command, options) => (await client.callTool({ name: "bash", arguments: { command } }, undefined, options)).content[0].text;

async function connected(url, client = personClient(true)) {
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  return { client, transport };
}

/** What the proxy answers to a request that is written by hand. */
function ask(url, { method = "POST", path = "/mcp", headers = {}, body, heard = () => {} }) {
  return new Promise((resolve, reject) => {
    const asked = request(new URL(path, url), { method, headers: { ...TYPES, ...headers } }, async (response) => {
      let got = "";
      for await (const chunk of response) heard((got += chunk));
      resolve({ status: response.statusCode, headers: response.headers, body: got });
    });
    asked.on("error", reject).end(typeof body === "object" ? JSON.stringify(body) : body);
  });
}

async function conversation({ client, transport }) {
  const played = await callAll(client, TURNS);
  assert.deepEqual(played, { told: TOLD, ended: "halted: enough" });
  await assert.rejects(text(client, "ls"), /Halted: enough/);
  await transport.terminateSession();
  await client.close();
}

test("before a program, each session has a program and a run of its own", async (t) => {
  const proxy = await listen(t, SHELL);
  const [one, two] = [await connected(proxy.url), await connected(proxy.url)];
  assert.notEqual(one.transport.sessionId, two.transport.sessionId);
  await conversation(one);
  // The halt of the other is not its own.
  assert.equal(await text(two.client, "ls"), "ran ls");
  const headers = { "mcp-session-id": one.transport.sessionId ?? "ended" };
  assert.equal((await ask(proxy.url, { headers, body: { jsonrpc: "2.0", id: 1, method: "ping" } })).status, 404);
  await two.client.close();
  proxy.child.kill();
  assert.deepEqual(await once(proxy.child, "exit"), [0, null], proxy.log);
});

test("before a server over HTTP, sessions end there, too, and begin anew when it has ended them", async (t) => {
  const server = await remote(t, () => shellServer(runTool));
  const proxy = await listen(t, [server.url], { HOOKYARD_MCP_AUTHORIZATION: "Bearer t" });
  await conversation(await connected(proxy.url));
  assert.equal(server.sessions.size, 0);
  assert.deepEqual([...new Set(server.seen)].sort(), ["DELETE session Bearer t", "GET session Bearer t", "POST none Bearer t", "POST session Bearer t"]);

  const { client, transport } = await connected(proxy.url);
  await until(() => server.seen.filter((line) => line.startsWith("GET")).length === 2);
  server.sessions.clear();
  await assert.rejects(text(client, "ls"), /Error POSTing/);
  const headers = { "mcp-session-id": transport.sessionId };
  await until(async () => (await ask(proxy.url, { headers, body: { jsonrpc: "2.0", id: 9, method: "ping" } })).status === 404);
  await client.close();
  const again = await connected(proxy.url);
  assert.equal(await text(again.client, "ls"), "ran ls");
  await again.client.close();
});

test("what a server says and asks beside its answers reaches the client, with a stream of its own and without", async (t) => {
  const server = await remote(t, () => {
    const shell = shellServer(runTool);
    shell.server.registerCapabilities({ logging: {} });
    shell.registerTool("slow", {}, async ({ _meta, sendNotification, sendRequest }) => {
      const params = { progressToken: _meta.progressToken, progress: 1, total: 2 };
      await sendNotification({ method: "notifications/progress", params });
      await shell.server.sendLoggingMessage({ level: "info", data: "half" });
      const asked = await shell.server.createMessage({ messages: [{ role: "user", content: { type: "text", text: "go?" } }], maxTokens: 9 });
      return { content: [{ type: "text", text: asked.content.text }] };
    });
    return shell;
  });
  const proxy = await listen(t, [server.url]);
  for (const listens of [true, false]) {
    const client = personClient();
    client.registerCapabilities({ sampling: {} });
    client.setRequestHandler(CreateMessageRequestSchema, () => ({ model: "m", role: "assistant", content: { type: "text", text: "yes" } }));
    const said = [];
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void said.push(params.data));
    const transport = new StreamableHTTPClientTransport(new URL(proxy.url), {
      fetch: (url, init) => (init.method === "GET" && !listens ? new Response(null, { status: 405 }) : fetch(url, init)),
    });
    await client.connect(transport);
    await until(() => server.seen.filter((line) => line.startsWith("GET")).length > Number(!listens));
    const onprogress = ({ progress, total }) => said.push(`${progress}/${total}`);
    const { content } = await client.callTool({ name: "slow" }, undefined, { onprogress });
    assert.equal(content[0].text, "yes");
    await until(() => said.length === 2);
    assert.deepEqual(said.sort(), ["1/2", "half"]);
    await client.close();
  }
});

test("a call that is cancelled ends, and the server speaks on the stream of another", async (t) => {
  const steps = new EventEmitter();
  const [isCancelled, isHalf] = ["cancelled", "half"].map((step) => once(steps, step));
  const server = await remote(t, () => {
    const shell = shellServer(runTool);
    shell.server.registerCapabilities({ logging: {} });
    shell.registerTool("waits", {}, async () => {
      await isCancelled;
      await shell.server.sendLoggingMessage({ level: "info", data: "half" });
      return isHalf.then(() => ({ content: [] })); // It comes on another stream than the result, and may be slower.
    });
    shell.registerTool("hangs", {}, ({ signal }) => new Promise((resolve) => (signal.onabort = () => resolve({ content: [] }))));
    return shell;
  });
  const proxy = await listen(t, [server.url]);
  const { headers: { "mcp-session-id": id } } = await ask(proxy.url, { body: INITIALIZE });
  const post = (body, heard) => ask(proxy.url, { headers: { "mcp-session-id": id }, body: { jsonrpc: "2.0", ...body }, heard });
  await post({ method: "notifications/initialized" });
  await until(() => server.seen.some((line) => line.startsWith("GET")));
  const before = server.seen.length;
  const waits = post({ id: 1, method: "tools/call", params: { name: "waits" } }, (got) => got.includes("half") && steps.emit("half"));
  const hangs = post({ id: 2, method: "tools/call", params: { name: "hangs" } });
  await until(() => server.seen.length === before + 2);
  assert.equal((await post({ method: "notifications/cancelled", params: { requestId: 2 } })).status, 202);
  assert.match((await hangs).body, /"id":2,"error":.*cancelled the call/);
  steps.emit("cancelled");
  assert.match((await waits).body, /"data":"half"[^]*"id":1/);
  // The id is free again.
  assert.match((await post({ id: 2, method: "tools/call", params: { name: "bash", arguments: { command: "ls" } } })).body, /ran ls/);
});

test("pages of other sites, other names, strangers and bodies without end are refused", async (t) => {
  const open = await listen(t, SHELL);
  const closed = await listen(t, SHELL, { HOOKYARD_MCP_TOKEN: "a token of some length" });
  const authorization = "Bearer a token of some length";
  const host = new URL(open.url).host;
  const large = { ...INITIALIZE, params: { ...INITIALIZE.params, more: "x".repeat(16 << 20) } };
  for (const [name, proxy, request, status] of [
    ["nothing wrong", open, { body: INITIALIZE }, 200],
    ["a page of its own", open, { headers: { origin: `http://${host}` }, body: INITIALIZE }, 200],
    ["a name that was made to lead here", open, { headers: { host: "evil.example" }, body: INITIALIZE }, 403],
    ["such a name with the port", open, { headers: { host: `evil.example:${new URL(open.url).port}` }, body: INITIALIZE }, 403],
    ["a name that looks like this machine", open, { headers: { host: "127.0.0.1.evil.example" }, body: INITIALIZE }, 403],
    ["a page elsewhere", open, { headers: { origin: "https://evil.example" }, body: INITIALIZE }, 403],
    ["a page of another port", open, { headers: { origin: "http://127.0.0.1:1" }, body: INITIALIZE }, 403],
    ["a page without an origin", open, { headers: { origin: "null" }, body: INITIALIZE }, 403],
    ["what a page asks first", open, { method: "OPTIONS", headers: { origin: "https://evil.example" } }, 403],
    ["a form", open, { headers: { "content-type": "text/plain" }, body: INITIALIZE }, 415],
    ["another path", open, { path: "/", body: INITIALIZE }, 404],
    ["no session", open, { method: "GET" }, 400],
    ["no session to end", open, { method: "DELETE" }, 400],
    ["no session to call in", open, { body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "bash" } } }, 400],
    ["a session that is none", open, { headers: { "mcp-session-id": "x" }, body: INITIALIZE }, 404],
    ["another method", open, { method: "PUT" }, 405],
    ["too large a body", open, { body: large }, 413],
    ["no JSON", open, { body: "{" }, 400],
    ["the token", closed, { headers: { authorization }, body: INITIALIZE }, 200],
    ["the token, behind a proxy of another name", closed, { headers: { authorization, host: "mcp.example.com" }, body: INITIALIZE }, 200],
    ["no token", closed, { body: INITIALIZE }, 401],
    ["another token", closed, { headers: { authorization: "Bearer another" }, body: INITIALIZE }, 401],
    ["the token and a page elsewhere", closed, { headers: { authorization, origin: "https://evil.example" }, body: INITIALIZE }, 403],
  ]) {
    const reply = await ask(proxy.url, request);
    assert.equal(reply.status, status, `${name}: ${reply.body}`);
    assert.equal(reply.headers["access-control-allow-origin"], undefined);
    if (status !== 200) assert(JSON.parse(reply.body).error.message, name);
  }
});

test("nothing runs while hookyard is away, unless it is told to go on", async (t) => {
  const away = { HOOKYARD_LISTEN_LINES: `${directory.path}/nobody.sock` };
  for (const [words, expected] of [[[], /hookyard gave no verdict/], [["--if-down", "block"], /hookyard gave no verdict/], [["--if-down", "allow"], /^ran ls$/]]) {
    const proxy = await listen(t, [...words, ...SHELL], away);
    const { client } = await connected(proxy.url);
    assert.match(await text(client, "ls"), expected);
    await client.close();
  }
});

/** A server that answers with the text of its call, and with the same number. */
function answer(line) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") return JSON.stringify({ jsonrpc: "2.0", id, result: { ...params, serverInfo: params.clientInfo, capabilities: { tools: {} } } });
  const [, number] = /"number":([^,}]*)/.exec(line);
  return `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":${JSON.stringify(line)}}],"structuredContent":{"number":${number}}}}`;
}

const ANSWERING = [process.execPath, "-e", `
  ${answer}
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => JSON.parse(line).id === undefined || console.log(answer(line)));`];

/** Asks the proxy on standard input and output. */
async function askingStdio(t) {
  const child = spawn(process.execPath, [PROGRAM, ...ANSWERING], {
    cwd: daemon.workspace, stdio: ["pipe", "pipe", "inherit"], env: { PATH: process.env.PATH, HOOKYARD_LISTEN_LINES: daemon.lines },
  });
  t.after(() => child.kill());
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (data) => (said += data));
  return async (body) => {
    const lines = said.split("\n").length;
    child.stdin.write(`${body}\n`);
    await until(() => said.split("\n").length > lines);
    return said.split("\n").at(-2);
  };
}

/** Asks the proxy over HTTP. */
async function askingHttp(t, words) {
  const { url } = await listen(t, words);
  let headers = {};
  return async (body) => {
    const reply = await ask(url, { headers, body });
    headers = { "mcp-session-id": reply.headers["mcp-session-id"] ?? headers["mcp-session-id"] };
    return /\{.*\}/.exec(reply.body)[0];
  };
}

/** A server over HTTP whose answers are no streams. */
async function answeringUrl(t) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (request.method !== "POST") return response.writeHead(405).end();
    if (JSON.parse(body).id === undefined) return response.writeHead(202).end();
    response.writeHead(200, { "content-type": "application/json" }).end(answer(body));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${server.address().port}/`;
}

test("a server gets the numbers that the client has sent and hooks have judged, and so does the client", async (t) => {
  for (const [door, asking] of [
    ["stdio", await askingStdio(t)],
    ["HTTP", await askingHttp(t, ANSWERING)],
    ["HTTP to HTTP", await askingHttp(t, [await answeringUrl(t)])],
  ]) {
    await asking(JSON.stringify(INITIALIZE));
    let id = 0;
    const call = (name, input) => asking(`{"jsonrpc":"2.0","id":${(id += 1)},"method":"tools/call","params":{"name":"${name}","arguments":${input}}}`);
    for (const number of ["9007199254740993", "-123456789012345678901234567890", "0.100000000000000005551115123125", "12345678901234567.5", "0.25", "null"]) {
      const input = `{"number":${number},"text":"1e400"}`;
      const judged = JSON.parse(await call("judged", input)).result;
      const judgedInput = /"tool_input":(\{.*?\})/.exec(judged.content[0].text)?.[1];
      const reply = await call("numbers", input);
      const arrived = /"arguments":(\{.*?\})/.exec(JSON.parse(reply).result.content[0].text)?.[1];
      const returned = /"structuredContent":\{"number":(.*?)\}/.exec(reply)?.[1];
      assert.deepEqual([judged.isError, judgedInput, arrived, returned], [true, input, input, number], `${door}: ${reply} ${JSON.stringify(judged)}`);
    }
    for (const [input, why] of [
      [`{"number":1e400}`, /number out of range/],
      // Hooks that change such a call give no answer that can be read.
      [`{"command":"curl http://x","number":12345678901234567.5}`, /the number 12345678901234567.5 cannot be kept as it is/],
    ]) {
      const { result } = JSON.parse(await call("bash", input));
      assert.deepEqual([door, result.isError, why.test(result.content[0].text)], [door, true, true], JSON.stringify(result));
    }
  }
});

test("a server that does not start, or ends, is an error of what waits for it", async (t) => {
  const none = await listen(t, ["/nowhere/server"]);
  await assert.rejects(connected(none.url), /the server did not start: .*ENOENT/);
  const dies = await listen(t, [process.execPath, "-e", `
    process.stdin.on("data", (data) => {
      const { id, method, params } = JSON.parse(data);
      if (method === "initialize") console.log(JSON.stringify({ jsonrpc: "2.0", id, result: { ...params, serverInfo: params.clientInfo, capabilities: { tools: {} } } }));
      if (method === "tools/call") process.exit(1);
    });`]);
  const { client } = await connected(dies.url);
  await assert.rejects(text(client, "ls"), /the server has ended the session/);
  await client.close();
});

test("without room, the session that is idle for the longest makes some", async (t) => {
  const server = await remote(t, () => shellServer(runTool));
  const proxy = await listen(t, [server.url]);
  const first = await ask(proxy.url, { body: INITIALIZE });
  const begin = async () => (await ask(proxy.url, { body: INITIALIZE })).headers["mcp-session-id"];
  const ids = [];
  for (let made = 0; made < 64; made += 1) ids.push(await begin());
  assert.equal(new Set(ids).size, 64);
  const ping = async (id) => (await ask(proxy.url, { headers: { "mcp-session-id": id }, body: { jsonrpc: "2.0", id: 1, method: "ping" } })).status;
  assert.deepEqual([await ping(first.headers["mcp-session-id"]), await ping(ids[0])], [404, 200]);
  await until(() => server.sessions.size === 64);

  // What begins none ends none.
  for (const body of ["{", { jsonrpc: "2.0", id: 1, method: "ping" }, { ...INITIALIZE, params: {} }, [INITIALIZE, { ...INITIALIZE, id: 1 }]]) {
    assert.equal((await ask(proxy.url, { body })).status, 400, JSON.stringify(body));
  }
  assert.equal((await ask(proxy.url, { headers: { "content-type": "text/plain" }, body: INITIALIZE })).status, 415);
  for (const id of ids) assert.equal(await ping(id), 200);

  // One that listens is in use.
  const listening = ids.map((id) => request(new URL("/mcp", proxy.url), { headers: { ...TYPES, "mcp-session-id": id } }).on("error", () => {}).end());
  await Promise.all(listening.map((asked) => once(asked, "response")));
  const refused = await ask(proxy.url, { body: INITIALIZE });
  assert.deepEqual([refused.status, /all 64 sessions are in use/.test(refused.body)], [503, true]);
  for (const asked of listening) asked.destroy();
  await until(begin);
});

test("it listens for this machine alone, unless clients need a token", () => {
  const run = (words, env) => spawnSync(process.execPath, [PROGRAM, ...words], { encoding: "utf8", timeout: 20_000, env: { PATH: process.env.PATH, ...env } });
  for (const [words, env, said] of [
    [["--listen", "0.0.0.0:0", ...SHELL], {}, /set HOOKYARD_MCP_TOKEN/],
    [["--listen", "[::]:0", ...SHELL], {}, /set HOOKYARD_MCP_TOKEN/],
    [["--listen", "example.com:0", ...SHELL], {}, /set HOOKYARD_MCP_TOKEN/],
    [["--listen", "0", ...SHELL], { HOOKYARD_MCP_TOKEN: "short" }, /shorter than 16/],
    [["--listen", "here", ...SHELL], {}, /usage:/],
    [["--listen"], {}, /usage:/],
    [["--if-down", "maybe", ...SHELL], {}, /usage:/],
    [["--listen", "0"], {}, /usage:/],
  ]) {
    const { status, stderr } = run(words, env);
    assert.deepEqual([status, said.test(stderr)], [2, true], `${words} ${stderr}`);
  }
});

test("the page shows what works", async (t) => {
  const page = readFileSync(new URL("../../../docs/clients.md", import.meta.url), "utf8");
  const block = (language, part) => [...page.matchAll(/\n```(\w+)\n([^]*?)\n```/g)].find((found) => found[1] === language && found[2].includes(part))[2];
  const [, ...shown] = block("text", "--listen").split(" ");
  const proxy = await listen(t, SHELL, {}, shown.slice(0, shown.indexOf("npx")).map((word) => word.replace("8788", "0")));
  const program = fileURLToPath(new URL("page.mjs", import.meta.url));
  writeFileSync(program, block("js", "http://127.0.0.1:8788/mcp").replace("http://127.0.0.1:8788/mcp", proxy.url));
  t.after(() => rmSync(program));
  const ran = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
  const printed = await ran.stdout.setEncoding("utf8").toArray();
  assert.equal(printed.join(""), "this would remove everything\nremove one directory of the project\n");
});
