#!/usr/bin/env node
// Gives random answers of hooks to Gemini CLI's own hook system and to hookyard, and compares what the agent makes of them.
//
//   tests/agents/gemini_hooks.mjs [target/debug/hookyard] [directory of @google/gemini-cli] [cases] [seed] [-v]
//
// The hooks of a case run once in Gemini CLI's hook system, and once in hookyard, which is then that system's only hook: a relay.
// Compared is what the system tells the agent, and what each hook was given. Ends with 1 if a case differs, and with 0 where
// the package is not installed (`npm install --ignore-scripts @google/gemini-cli`).

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";

const [program = "hookyard", gemini = "node_modules/@google/gemini-cli", count = "1000", first = "1", verbose] = process.argv.slice(2);
const bundle = path.resolve(gemini, "bundle");
const exporting = fs.existsSync(bundle) && fs.readdirSync(bundle).find((name) => /^core-.*\.js$/.test(name));
if (!exporting) {
  console.log(`skipped: there is no Gemini CLI in ${gemini}; npm install --ignore-scripts @google/gemini-cli`);
  process.exit(0);
}
const work = fs.mkdtempSync(path.join(os.tmpdir(), "gemini-hooks-"));
const project = path.join(work, "project");
const hookyardsHome = path.join(work, "hookyard");
process.env.HOME = path.join(work, "home");
for (const directory of [project, `${hookyardsHome}/.gemini`, process.env.HOME, `${work}/answers`, `${work}/given`]) fs.mkdirSync(directory, { recursive: true });
const { HookSystem } = await import(path.join(bundle, exporting));

/** Numbers from a seed, so that a case can be repeated. */
function random(seed) {
  let state = seed * 2654435761;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit) => Math.floor(next() * limit);
  return { below, of: (values) => values[below(values.length)], chance: (part) => next() < part };
}

const TEXTS = ["no", "because <this>", "", "  ", "two\nlines", "naïve ✓", "{}"];
const DECISIONS = ["allow", "approve", "ask", "block", "deny"];
// Not among them is what the agent cannot say itself, or what hookyard takes in a stricter way (docs/dialects.md).
const ODD = { text: [0, 5, true, false], flag: ["text", "", 0, 5, [], {}], decision: ["DENY", "reject", "", 5, [], {}], list: [[], ["a"]], other: [0, 5, "text", "", [], ["a"]] };
const MESSAGES = [{ role: "user", content: "other" }, { role: "model", content: "said" }, { role: "user", content: ["a", "b"] }];
const WORDS = {
  tool_input: (r) => r.of([{ command: "true" }, { command: "ls", dir_path: "." }, {}, { n: { deep: [1, null] } }]),
  additionalContext: (r) => r.of(TEXTS.filter(Boolean)),
  clearContext: (r) => r.chance(0.5),
  tailToolCallRequest: (r) => r.of([{ name: "glob", args: { pattern: "*" } }, {}]),
  llm_request: (r) => r.of([{ model: "gemini-2.5-pro" }, { config: { temperature: 0.25 } }, { messages: [r.of(MESSAGES)] }, {}, { config: { maxOutputTokens: 5 }, toolConfig: { mode: "NONE" } }]),
  llm_response: (r) => r.of([
    { candidates: [{ content: { role: "model", parts: ["other"] }, finishReason: "STOP" }] },
    { candidates: [{ content: { role: "model", parts: [r.of(TEXTS)] } }], usageMetadata: { totalTokenCount: 5 } },
    { text: "bare", candidates: [] },
    {},
  ]),
  toolConfig: (r) => r.of([{ mode: "NONE" }, { mode: "ANY", allowedFunctionNames: ["glob"] }, { mode: "AUTO", allowedFunctionNames: ["read_file", "glob"] }, { allowedFunctionNames: [] }, {}]),
  permissionDecision: () => "deny",
};
const TOP = {
  continue: (r) => r.chance(0.5),
  stopReason: (r) => r.of(TEXTS),
  suppressOutput: (r) => r.chance(0.5),
  systemMessage: (r) => r.of(TEXTS),
  decision: (r) => r.of(DECISIONS),
  reason: (r) => r.of(TEXTS),
};
const TYPES = { continue: "flag", stopReason: "text", suppressOutput: "flag", systemMessage: "text", decision: "decision", reason: "text", clearContext: "flag", additionalContext: "text" };

/** The words that hooks of an event use, and now and then others. */
const OWN = {
  SessionStart: ["additionalContext"], SessionEnd: ["additionalContext"], PreCompress: [], Notification: [],
  BeforeAgent: ["additionalContext"], AfterAgent: ["clearContext", "additionalContext"],
  BeforeModel: ["llm_request", "llm_response"], AfterModel: ["llm_response"], BeforeToolSelection: ["toolConfig"],
  BeforeTool: ["tool_input", "additionalContext"], AfterTool: ["additionalContext", "tailToolCallRequest"],
};

/** The fields of an object: each with its chance, and of a wrong type now and then. Texts of some events add up. */
function fields(r, makers, chance, isAlone, adds) {
  const made = {};
  for (const [name, make] of Object.entries(makers)) {
    if (!r.chance(chance)) continue;
    const type = TYPES[name] ?? "other";
    // What a later answer of a wrong type takes back from an earlier one stays with hookyard.
    made[name] = r.chance(0.06) && (isAlone || (adds && type === "text")) ? r.of(ODD[type]) : make(r);
    // So does an empty reason.
    if (made[name] === "" && !isAlone && !adds) delete made[name];
  }
  return made;
}

function answer(r, event, isAlone, names) {
  const adds = !["BeforeModel", "AfterModel"].includes(event);
  const made = fields(r, TOP, 0.3, isAlone, adds);
  if (r.chance(0.7)) {
    const makers = Object.fromEntries(names.map((name) => [name, WORDS[name]]));
    made.hookSpecificOutput = { ...(r.chance(0.8) ? { hookEventName: event } : {}), ...fields(r, makers, 0.7, isAlone, adds) };
    if (r.chance(0.03) && isAlone) made.hookSpecificOutput = r.of(ODD.list);
  }
  return made;
}

/** What a hook prints and how it ends. */
function reply(r, event, isAlone, isSequential) {
  let names = r.chance(0.9) ? OWN[event] : Object.keys(WORDS);
  // Changes of a request add up with hookyard, one after the other.
  if (isSequential && !isAlone) names = names.filter((name) => name !== "llm_request");
  const made = answer(r, event, isAlone, names);
  // Of a text or a list, the next hook would be given the parts as arguments.
  const changed = made.hookSpecificOutput?.tool_input;
  if (isSequential && (typeof changed === "string" || Array.isArray(changed))) delete made.hookSpecificOutput.tool_input;
  const json = JSON.stringify(made);
  const odd = JSON.stringify(r.of([null, 0, 5, true, [], ["a"]]));
  const out = r.of([json, json, json, json, json, json, "", r.of(TEXTS), JSON.stringify(json), `${json} `, `\ufeff${json}`, `log\n${json}`, json.slice(0, -1), odd, `[${json}]`]);
  return { out, err: r.chance(0.2) ? r.of(["oops", json, ""]) : "", code: r.of([0, 0, 0, 0, 0, 0, 1, 2, 2, 3]), at: r.chance(0.1) ? "err" : "out" };
}

const INPUTS = [{ command: "npm i", dir_path: "." }, { file_path: "/etc/passwd", n: 1.5, list: [1, { a: null }] }, {}];
const REQUEST = { model: "gemini-2.5-flash", contents: [{ role: "user", parts: [{ text: "hello" }] }], config: { temperature: 1, topP: 0.95 } };
const CHUNK = { candidates: [{ index: 0, content: { role: "model", parts: [{ text: "working" }] }, finishReason: "STOP" }], usageMetadata: { totalTokenCount: 2 } };
const EVENTS = {
  SessionStart: async (hooks) => ({ ...said(await hooks.fireSessionStartEvent("startup")), ends: null }),
  // The agent asks nothing of the answers to these three.
  SessionEnd: async (hooks) => void (await hooks.fireSessionEndEvent("exit")),
  PreCompress: async (hooks) => void (await hooks.firePreCompressEvent("manual")),
  Notification: async (hooks) => void (await hooks.getEventHandler().fireNotificationEvent("ToolPermission", "a message", { type: "exec", command: "ls" })),
  BeforeAgent: async (hooks) => said(await hooks.fireBeforeAgentEvent("do it")),
  AfterAgent: async (hooks) => {
    const output = await hooks.fireAfterAgentEvent("do it", "done");
    const { ends, message } = said(output);
    return { ends, message, clears: Boolean(ends && output.shouldClearContext()) };
  },
  BeforeModel: async (hooks) => {
    const { modifiedModel, modifiedConfig, modifiedContents, ...rest } = await hooks.fireBeforeModelEvent(structuredClone(REQUEST));
    const told = withTextReason(rest);
    const request = { model: modifiedModel, contents: modifiedContents, config: modifiedConfig };
    return modifiedModel === undefined || isDeepStrictEqual(request, REQUEST) ? told : { ...told, request };
  },
  AfterModel: async (hooks) => withTextReason(await hooks.fireAfterModelEvent(structuredClone(REQUEST), structuredClone(CHUNK))),
  BeforeToolSelection: (hooks) => hooks.fireBeforeToolSelectionEvent(structuredClone(REQUEST)),
  BeforeTool: async (hooks, r) => {
    const given = r.of(INPUTS);
    const output = await hooks.fireBeforeToolEvent("run_shell_command", structuredClone(given));
    const { ends, message } = said(output);
    if (ends) return { ends };
    const input = output?.getModifiedToolInput();
    // An input that stays as it is changes nothing.
    return { asks: output?.isAskDecision() ? [message] : null, input: isDeepStrictEqual(input, given) ? undefined : input };
  },
  AfterTool: async (hooks, r) => {
    const output = await hooks.fireAfterToolEvent("run_shell_command", r.of(INPUTS), { llmContent: "out", returnDisplay: "out" });
    const { ends, context } = said(output);
    return ends ? { ends } : { context, tail: output?.getTailToolCallRequest() };
  },
};

/** The agent prints a reason, whatever it is. */
const withTextReason = (told) => (told.reason === undefined ? told : { ...told, reason: String(told.reason) });

/** What the agent asks of most answers: whether it ends or blocks and why, the message for the person and the context for the model. */
function said(output) {
  const ends = output?.shouldStopExecution() ? "stops" : output?.isBlockingDecision() ? "blocks" : null;
  return {
    ends: ends && [ends, String(output.getEffectiveReason())],
    message: plain(output?.systemMessage || "") || null,
    context: (!ends && output?.getAdditionalContext()) || null,
  };
}

/** A text without what hookyard adds on purpose: lines about hooks that failed, and a reason where a hook gave none. */
function plain(text) {
  const lines = text.split("\n").filter((line) => !/^hook `gemini\S*` /.test(line));
  return lines.join("\n").replace(/^(blocked|stopped) by (hook `[^`]*`|a hook)$/, "No reason provided").replaceAll(/\d+-(direct|through)/g, "");
}

const MOST = 3;

/** The session that the events of a case belong to. */
let session = "";

/** The hook system of an agent with these hooks. */
async function system(hooks) {
  const config = {
    isTrustedFolder: () => true, getProjectHooks: () => undefined, getProjectRoot: () => project, getHooks: () => hooks,
    getExtensions: () => [], getDisabledHooks: () => [], sanitizationConfig: {}, storage: { getPlansDir: () => `${work}/plans` },
    getSessionId: () => session, getWorkingDir: () => project, getTelemetryEnabled: () => false,
    getTelemetryLogPromptsEnabled: () => false, getUsageStatisticsEnabled: () => false, isInteractive: () => false, getDebugMode: () => false,
  };
  config.config = config;
  const made = new HookSystem(config);
  await made.initialize();
  return made;
}

const entry = (commands, more) => [{ ...more, hooks: commands.map((command, index) => ({ type: "command", name: `hook-${index}`, command })) }];
const speaker = (number) => `${work}/answers/${number}`;
const command = (number) => `cat > ${work}/given/${number}; . ${speaker(number)}`;
const numbers = [...Array(MOST).keys()];
const ownHooks = (more) => Object.fromEntries(Object.keys(EVENTS).map((event) => [event, entry(numbers.map(command), more)]));

async function daemon(name, more) {
  const home = path.join(work, name);
  fs.mkdirSync(path.join(home, ".gemini"), { recursive: true });
  fs.writeFileSync(path.join(home, ".gemini/settings.json"), JSON.stringify({ hooks: ownHooks(more) }));
  const socket = path.join(work, `${name}.sock`);
  const settings = ["trust=off", "data=null", "watch=false"].flatMap((setting) => ["--set", setting]);
  const started = spawn(program, ["serve", "--workspace", project, "--socket", socket, "--home", home, ...settings], { env: { PATH: process.env.PATH }, stdio: ["ignore", "ignore", fs.openSync(`${work}/${name}.log`, "w")] });
  while (spawnSync(program, ["status", "--socket", socket]).status !== 0) {
    if (started.exitCode !== null) throw new Error(`the daemon ended: ${fs.readFileSync(`${work}/${name}.log`)}`);
    await new Promise((later) => setTimeout(later, 50));
  }
  const relay = `${path.resolve(program)} relay --dialect gemini --socket ${socket} --if-down block`;
  return { started, system: await system(Object.fromEntries(Object.keys(EVENTS).map((event) => [event, entry([relay])]))) };
}

/** What a hook was given, without what differs from one time to the next. */
function given(number) {
  const file = `${work}/given/${number}`;
  if (!fs.existsSync(file)) return null;
  const text = fs.readFileSync(file, "utf8");
  fs.rmSync(file);
  try {
    const { timestamp, ...rest } = JSON.parse(text);
    return { ...rest, timestamp: typeof timestamp };
  } catch {
    return text;
  }
}

async function fire(hooks, event, seed) {
  const told = await EVENTS[event](hooks, random(seed + 0.5));
  return JSON.parse(JSON.stringify({ told: told ?? null, given: numbers.map(given) }));
}

/** A value with plain texts and the keys of objects in one order. */
function sorted(value) {
  if (typeof value === "string") return plain(value);
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

const pairs = [];
for (const [name, more] of [["parallel", {}], ["sequential", { sequential: true }]]) {
  pairs.push({ name, direct: await system(ownHooks(more)), ...(await daemon(name, more)) });
}
let different = 0;
const silent = ["log", "warn", "error", "debug", "info"].map((name) => [name, console[name]]);
for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
  const r = random(seed);
  const event = r.of(Object.keys(EVENTS));
  const { name, direct, system: through } = r.of(pairs);
  const speakers = 1 + r.below(MOST);
  const replies = numbers.map((number) => (number < speakers ? reply(r, event, speakers === 1, name === "sequential") : null));
  replies.forEach((made, number) => {
    fs.writeFileSync(`${work}/out-${number}`, made ? (made.at === "out" ? made.out : "") : "");
    fs.writeFileSync(`${work}/err-${number}`, made ? (made.at === "err" ? made.out : made.err) : "");
    fs.writeFileSync(speaker(number), made ? `cat ${work}/out-${number}; cat ${work}/err-${number} >&2; exit ${made.code}` : "");
  });
  for (const [name] of silent) console[name] = () => {};
  session = `${seed}-direct`;
  const wanted = await fire(direct, event, seed);
  session = `${seed}-through`;
  const got = await fire(through, event, seed);
  for (const [name, method] of silent) console[name] = method;
  const [one, two] = [wanted, got].map((result) => JSON.stringify(sorted(result)));
  if (one !== two) {
    different++;
    console.log(`different ${seed} ${event} ${name}`);
    if (verbose) {
      console.log(`  hooks            ${JSON.stringify(replies)}\n  directly         ${one}\n  through hookyard ${two}`);
    }
  }
}
for (const { started } of pairs) started.kill();
fs.rmSync(work, { recursive: true, force: true });
console.log(`${count} cases, ${different} different`);
process.exit(different > 0 ? 1 : 0);
