#!/usr/bin/env node
// Runs hooks in Cursor's own engine and through `hookyard fire`, and compares what the agent is told.
//
//   tests/agents/cursor.mjs [target/debug/hookyard] [directory of @cursor/sdk] [part of a case's name]
//
// The engine is that of the package @cursor/sdk (`npm install --ignore-scripts @cursor/sdk`), which exports no part of it: this
// reads the package's modules with two lines more. Ends with 1 if a case differs, and with 0 where the package is not
// installed.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

const [given = "hookyard", sdk = "node_modules/@cursor/sdk", wanted = ""] = process.argv.slice(2);
// It runs in directories of its own.
const program = given.includes("/") ? path.resolve(given) : given;
const work = fs.mkdtempSync(path.join(os.tmpdir(), "cursor-"));
fs.mkdirSync(path.join(work, "home"));
process.on("exit", () => fs.rmSync(work, { recursive: true, force: true }));

/** The classes of the engine that run hooks and read the settings files. */
async function engine() {
  const modules = path.join(path.resolve(sdk), "dist/cjs");
  const copy = fs.mkdtempSync(path.join(path.resolve(sdk), "dist/patched-"));
  try {
    let chunk;
    for (const name of fs.readdirSync(modules).filter((name) => name.endsWith(".js"))) {
      let text = fs.readFileSync(path.join(modules, name), "utf8");
      // The loader of the modules, which is minified in newer versions.
      const loaders = [/\b(__webpack_require__)\.m=/, /\b(\w+)\.m=(?=\w+,\1\.\w+=)/];
      if (name === "index.js") text = text.replace(loaders.find((pattern) => pattern.test(text)), "globalThis.required=$1,$&");
      const classWith = (method) => [...text.slice(0, text.search(method)).matchAll(/class (\w+)\{/g)].at(-1);
      const runner = /(?<![.\w])executeHookForStep\([\w,]+\)\{/;
      if (runner.test(text)) {
        const [runs, reads] = [runner, /dedupeClaudeHooksAgainstCursorHooks\(e\)\{/].map(classWith);
        const exported = `globalThis.engine=()=>({Runner:${runs[1]},Reader:${reads[1]}});`;
        text = text.slice(0, runs.index) + exported + text.slice(runs.index);
        chunk = name;
      }
      fs.writeFileSync(path.join(copy, name), text);
    }
    fs.writeFileSync(path.join(copy, "package.json"), '{"type":"commonjs"}');
    const require = createRequire(path.join(copy, "index.js"));
    const loader = require("node:module");
    const load = loader._load;
    // Its database is compiled when it is installed, and no hook needs it.
    loader._load = (name, ...rest) => (name === "sqlite3" ? { Database: class {} } : load(name, ...rest));
    require(path.join(copy, "index.js"));
    const chunks = fs.readdirSync(copy).map((name) => Number(name.split(".")[0])).filter(Boolean);
    await Promise.all(chunks.map((number) => globalThis.required.e(number)));
    const [entry] = Object.keys(require(path.join(copy, chunk)).modules).filter((name) => name.endsWith("local-executor.ts"));
    globalThis.required(entry);
    return globalThis.engine();
  } finally {
    fs.rmSync(copy, { recursive: true, force: true });
  }
}

/** Runs command lines as the engine has them run. */
const shell = {
  async *execute(_, command, { workingDirectory, signal, env }) {
    const child = spawn("/bin/bash", ["-c", command], { cwd: workingDirectory, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    signal?.addEventListener("abort", () => child.kill("SIGKILL"));
    const events = [];
    for (const type of ["stdout", "stderr"]) child[type].on("data", (data) => events.push({ type, data }));
    const code = await new Promise((ended) => child.on("close", ended));
    yield* events;
    yield { type: "exit", code };
  },
};

const SHELL = { tool_name: "Shell", tool_input: { command: "npm i", cwd: "" }, tool_use_id: "t1", cwd: "" };
const BASE = { conversation_id: "c1", generation_id: "g1", model: "auto" };
const EVENTS = {
  preToolUse: SHELL,
  postToolUse: { ...SHELL, tool_output: '{"output":"done","exitCode":0}', duration: 5 },
  postToolUseFailure: { ...SHELL, error_message: "exit code 1", failure_type: "error", duration: 5, is_interrupt: false },
  beforeShellExecution: { command: "npm i", cwd: "", sandbox: false },
  afterShellExecution: { command: "npm i", output: "done", duration: 5, sandbox: false },
  beforeMCPExecution: { tool_name: "query", tool_input: '{"sql":"select 1"}', url: "http://localhost:1" },
  beforeReadFile: { file_path: "/srv/shop/.env", content: "KEY=1", attachments: [] },
  beforeSubmitPrompt: { prompt: "do it", attachments: [] },
  sessionStart: { is_background_agent: false },
  sessionEnd: { reason: "completed", duration_ms: 5, is_background_agent: false, final_status: "completed" },
  stop: { status: "completed", loop_count: 0 },
  subagentStart: { subagent_id: "a1", subagent_type: "explore", task: "look", parent_conversation_id: "c1", tool_call_id: "t1", is_parallel_worker: false },
  subagentStop: { subagent_id: "a1", subagent_type: "explore", status: "completed", duration_ms: 5, summary: "", parent_conversation_id: "c1", message_count: 1, tool_call_count: 1, modified_files: [], loop_count: 0, task: "look", description: "d" },
  preCompact: { trigger: "auto", context_usage_percent: 90, context_tokens: 9, context_window_size: 10, message_count: 4, messages_to_compact: 2, is_first_compaction: true },
  afterFileEdit: { file_path: "/srv/shop/a.ts", edits: [{ old_string: "a", new_string: "b" }] },
};

const says = (answer) => `cat > /dev/null\ncat <<'END'\n${typeof answer === "string" ? answer : JSON.stringify(answer)}\nEND`;
const exits = (code, { out = "", err = "" } = {}) => `cat > /dev/null\nprintf %s '${out}'\nprintf %s '${err}' >&2\nexit ${code}`;
const deny = (more = {}) => says({ permission: "deny", ...more });

// Name, event, the scripts of its hooks, and what differs from the usual: keys of the hooks, fields of the event.
const CASES = [
  ["nothing printed", "preToolUse", ["cat > /dev/null"]],
  ["an empty object", "preToolUse", [says({})]],
  ["allow", "preToolUse", [says({ permission: "allow" })]],
  ["deny with a message", "preToolUse", [deny({ user_message: "use pnpm" })]],
  ["deny with both messages", "preToolUse", [deny({ user_message: "use pnpm", agent_message: "try pnpm i" })]],
  ["deny without a message", "preToolUse", [deny()]],
  ["ask about a tool", "preToolUse", [says({ permission: "ask", user_message: "sure?" })]],
  ["a changed input", "preToolUse", [says({ updated_input: { command: "npm ci", cwd: "" } })]],
  ["a changed input that is no object", "preToolUse", [says({ updated_input: "npm ci" })]],
  ["allow with a changed input", "preToolUse", [says({ permission: "allow", updated_input: { command: "npm ci", cwd: "" } })]],
  ["context before a tool", "preToolUse", [says({ additional_context: "mind" })]],
  ["context by Claude Code's word", "preToolUse", [says({ additionalContext: "mind" })]],
  ["deny with context", "preToolUse", [deny({ user_message: "no", additional_context: "mind" })]],
  ["a permission that is none", "preToolUse", [says({ permission: "maybe" })]],
  ["a message of another type", "preToolUse", [says({ permission: "allow", user_message: 1 })]],
  ["a list", "preToolUse", [says([1])]],
  ["a text", "preToolUse", [says("all right")]],
  ["text before JSON", "preToolUse", [says('ok {"permission":"allow"}')]],
  ["exit code 2 with standard error", "preToolUse", [exits(2, { err: "no installs" })]],
  ["exit code 2 with standard output", "preToolUse", [exits(2, { out: "no installs", err: "ignored" })]],
  ["exit code 2 with nothing", "preToolUse", [exits(2)]],
  ["exit code 1", "preToolUse", [exits(1, { err: "broken" })]],
  ["exit code 1 that fails closed", "preToolUse", [exits(1, { err: "broken" })], { failClosed: true }],
  ["nothing printed that fails closed", "preToolUse", ["cat > /dev/null"], { failClosed: true }],
  ["a text that fails closed", "preToolUse", [says("all right")], { failClosed: true }],
  ["too late", "preToolUse", ["sleep 30"], { timeout: 0.3 }],
  ["too late and fails closed", "preToolUse", ["sleep 30"], { timeout: 0.3, failClosed: true }],
  ["a matcher that matches", "preToolUse", [deny({ user_message: "no" })], { matcher: "Sh.ll" }],
  ["a matcher that does not", "preToolUse", [deny({ user_message: "no" })], { matcher: "^Write$" }],
  ["a star", "preToolUse", [deny({ user_message: "no" })], { matcher: "*" }],
  ["two denials", "preToolUse", [deny({ user_message: "one" }), deny({ user_message: "two" })]],
  ["a denial after a permission", "preToolUse", [says({ permission: "allow" }), deny({ user_message: "two" })]],
  ["two contexts", "preToolUse", [says({ additional_context: "one" }), says({ additional_context: "two" })]],
  ["two changed inputs", "preToolUse", [says({ updated_input: { command: "one" } }), says({ updated_input: { command: "two" } })]],
  ["deny a command", "beforeShellExecution", [deny({ user_message: "use pnpm", agent_message: "use pnpm" })]],
  ["ask about a command", "beforeShellExecution", [says({ permission: "ask", user_message: "sure?" })]],
  ["exit code 2 for a command", "beforeShellExecution", [exits(2, { err: "no" })]],
  ["a matcher of a command", "beforeShellExecution", [deny({ user_message: "no" })], { matcher: "^npm" }],
  ["a matcher of another command", "beforeShellExecution", [deny({ user_message: "no" })], { matcher: "^git" }],
  ["deny an MCP server", "beforeMCPExecution", [deny({ user_message: "no" })], { matcher: "^MCP:query$" }],
  ["another MCP tool", "beforeMCPExecution", [deny({ user_message: "no" })], { matcher: "^MCP:other$" }],
  ["deny a file", "beforeReadFile", [deny({ user_message: "secret" })]],
  ["ask about a file", "beforeReadFile", [says({ permission: "ask" })]],
  ["a word as matcher", "beforeReadFile", [deny({ user_message: "secret" })], { matcher: "Read" }],
  ["deny a subagent", "subagentStart", [deny({ user_message: "no" })], { matcher: "explore" }],
  ["hold a prompt back", "beforeSubmitPrompt", [says({ continue: false, user_message: "no secrets" })]],
  ["let a prompt go on", "beforeSubmitPrompt", [says({ continue: true })]],
  ["context with a prompt", "beforeSubmitPrompt", [says({ additional_context: "mind" })]],
  ["exit code 2 for a prompt", "beforeSubmitPrompt", [exits(2, { err: "no secrets" })]],
  ["a text for a prompt", "beforeSubmitPrompt", [says("all right")]],
  ["context at the beginning", "sessionStart", [says({ additional_context: "mind", env: { A: "1" } })]],
  ["two environments", "sessionStart", [says({ env: { A: "1", B: "1" } }), says({ env: { A: "2" } })]],
  ["end a session that begins", "sessionStart", [says({ continue: false, user_message: "closed" })]],
  ["exit code 2 at the beginning", "sessionStart", [exits(2, { err: "closed" })]],
  ["go on working", "stop", [says({ followup_message: "write tests" })]],
  ["go on by Claude Code's word", "stop", [says({ decision: "block", reason: "write tests" })]],
  ["exit code 2 at a stop", "stop", [exits(2, { err: "write tests" })]],
  ["the fifth follow-up", "stop", [says({ followup_message: "again" })], {}, { loop_count: 4 }],
  ["the sixth follow-up", "stop", [says({ followup_message: "again" })], {}, { loop_count: 5 }],
  ["a limit of its own", "stop", [says({ followup_message: "again" })], { loop_limit: 1 }, { loop_count: 1 }],
  ["no limit", "stop", [says({ followup_message: "again" })], { loop_limit: null }, { loop_count: 50 }],
  ["a subagent goes on", "subagentStop", [says({ followup_message: "more" })]],
  ["context after a tool", "postToolUse", [says({ additional_context: "mind" })]],
  ["deny after a tool", "postToolUse", [deny({ user_message: "too late" })]],
  ["context after a failure", "postToolUseFailure", [says({ additional_context: "mind" })]],
  ["a message before compaction", "preCompact", [says({ user_message: "compacting" })]],
  ["after an edit", "afterFileEdit", [deny({ user_message: "too late" })]],
  ["after a command", "afterShellExecution", [says({})], { matcher: "npm" }],
  ["at the end", "sessionEnd", [says({})]],
];

// Where hookyard does otherwise, and why.
const KNOWN = {
  "ask about a tool": "the agent would run the tool without asking: hookyard denies it",
  "ask about a file": "the agent blocks an answer that it cannot read; hookyard says so in other words",
  "a permission that is none": "the same",
  "a message of another type": "the same",
  "a changed input that is no object": "the same",
  "a list": "the same",
  "a text": "the same",
  "text before JSON": "newer versions skip the text: hookyard denies what it cannot read",
  "exit code 1 that fails closed": "the reason is that of hookyard",
  "nothing printed that fails closed": "the same",
  "a text that fails closed": "the same",
  "too late and fails closed": "the same",
  "exit code 2 with nothing": "the reason does not name the command",
  "deny without a message": "hookyard gives a reason",
};

// Those of them that hookyard denies, whatever the agent does.
const STRICTER = ["ask about a tool", "text before JSON"];

/** What the agent does about an answer, in the words that it reads on the event. */
function effect(event, answer, isKnown) {
  const a = answer ?? {};
  const permission = ["preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "subagentStart"].includes(event);
  const text = (value) => (typeof value === "string" && value.trim() ? value.trim() : undefined);
  const read = {};
  if (permission) {
    read.permission = ["deny", "ask"].includes(a.permission) ? a.permission : "as usual";
    if (read.permission !== "as usual" && !isKnown) read.reason = text(a.user_message);
  }
  if (event === "preToolUse" && read.permission !== "deny") read.input = a.updated_input;
  if (["beforeSubmitPrompt", "sessionStart"].includes(event)) {
    read.goesOn = a.continue !== false;
    if (!read.goesOn) read.reason = text(a.user_message);
  }
  if (["preToolUse", "postToolUse", "postToolUseFailure", "sessionStart"].includes(event)) read.context = text(a.additional_context);
  if (event === "beforeSubmitPrompt" && read.goesOn) read.context = text(a.additional_context);
  if (["stop", "subagentStop"].includes(event)) read.followup = text(a.followup_message);
  if (event === "sessionStart") read.env = a.env;
  if (event === "preCompact") read.message = text(a.user_message);
  return JSON.stringify(read);
}

/** The project of a case. */
function project(number, scripts, event, keys) {
  const root = path.join(work, `case-${number}`);
  fs.mkdirSync(path.join(root, ".cursor"), { recursive: true });
  const hooks = scripts.map((script, index) => {
    fs.writeFileSync(path.join(root, `hook-${index}.sh`), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return { command: `./hook-${index}.sh`, ...keys };
  });
  fs.writeFileSync(path.join(root, ".cursor/hooks.json"), JSON.stringify({ version: 1, hooks: { [event]: hooks } }));
  return root;
}

async function main() {
  if (!fs.existsSync(path.join(sdk, "dist/cjs/index.js"))) {
    console.log("skipped: @cursor/sdk is not installed");
    return 0;
  }
  const { Runner, Reader } = await engine();
  const files = { readFile: async (file) => fs.readFileSync(file, "utf8"), exists: async (file) => fs.existsSync(file) };
  let [right, wrong] = [0, 0];
  for (const [number, [name, event, scripts, keys = {}, more = {}]] of CASES.entries()) {
    if (!name.includes(wanted)) continue;
    const root = project(number, scripts, event, keys);
    const config = await new Reader(files, { projectConfigPath: path.join(root, ".cursor/hooks.json") }).load();
    if (config.errors.length > 0) throw new Error(`${name}: ${JSON.stringify(config.errors)}`);
    const runner = new Runner(config, root, { cursor_version: "3.0.0", user_email: null }, shell);
    const request = { ...BASE, ...EVENTS[event], ...more };
    const own = await runner.executeHookForStep(event, { ...request });
    const sent = { ...request, session_id: "c1", hook_event_name: event, cursor_version: "3.0.0", workspace_roots: [root], user_email: null, transcript_path: null };
    const home = path.join(work, "home");
    const command = ["fire", "--event", "-", "--dialect", "cursor", "--native", "--trust-workspace", "--workspace", root, "--home", home];
    const done = spawnSync(program, command, { input: JSON.stringify(sent), encoding: "utf8", cwd: root });
    const answer = done.status === 0 ? JSON.parse(done.stdout.trim() || "{}") : { permission: "deny", continue: false, user_message: done.stderr };
    const [expected, seen] = [own, answer].map((said) => effect(event, said, name in KNOWN));
    const isDenied = STRICTER.includes(name) && seen.includes('"deny"');
    if (STRICTER.includes(name) ? isDenied : expected === seen) {
      right += 1;
    } else {
      wrong += 1;
      console.log(`wrong  ${event}: ${name}\n       Cursor    ${expected}\n       hookyard  ${seen}\n       ${done.stdout.trim()} ${done.stderr.trim()}`);
    }
  }
  console.log(`${right} cases as in Cursor, ${wrong} not`);
  return wrong > 0 ? 1 : 0;
}

process.exit(await main());
