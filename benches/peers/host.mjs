// A host in Node for the bench `peers`: it says `ready`, then does what each line of standard input asks, `WHAT NUMBER
// AT_ONCE`, and answers with the nanoseconds that it took.
//
//   node host.mjs PROJECT GEMINI_CLI_CORE [SOCKET_OF_LINES]
//
// With `-` for the package only what needs none can be asked.

import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const [project, gemini, lines] = process.argv.slice(2);
const TOOL = ["Bash", { command: "npm run lint" }];
const HOOKS = 5;

/** What an agent tells its hooks of a tool call. */
const event = (more) => ({
  session_id: "session-1", transcript_path: "", cwd: project, hook_event_name: "BeforeTool", timestamp: new Date().toISOString(),
  tool_name: TOOL[0], tool_input: TOOL[1], ...more,
});

/** The least that runs a command hook and takes its answer. */
function plain() {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", "true"], { cwd: project });
    let [out, err] = ["", ""];
    child.stdout.on("data", (part) => (out += part));
    child.stderr.on("data", (part) => (err += part));
    // `true` may be gone before it is told anything.
    child.stdin.on("error", () => {}).end(JSON.stringify(event()));
    child.on("error", reject);
    child.on("close", (code) => {
      if (code !== 0) return reject(new Error(`exit code ${code}: ${err}`));
      resolve(out ? JSON.parse(out) : undefined);
    });
  });
}

/** Gemini CLI's own hook system with these hooks of its settings file, as the agent makes it. */
async function system(core, hooks) {
  const config = {
    isTrustedFolder: () => true, getProjectHooks: () => undefined, getProjectRoot: () => project, getHooks: () => hooks,
    getExtensions: () => [], getDisabledHooks: () => [], sanitizationConfig: {}, storage: { getPlansDir: () => `${project}/plans` },
    getSessionId: () => "session-1", getWorkingDir: () => project, getTelemetryEnabled: () => false,
    getTelemetryLogPromptsEnabled: () => false, getUsageStatisticsEnabled: () => false, isInteractive: () => false, getDebugMode: () => false,
  };
  config.config = config;
  const made = new core.HookSystem(config);
  await made.initialize();
  return made;
}

/** Fires the event of a tool call; all hooks have to succeed. */
async function fire(hooks) {
  const result = await hooks.getEventHandler().fireBeforeToolEvent(...TOOL);
  if (!result.success || result.errors.length > 0) throw result.errors[0] ?? new Error("a hook failed");
}

async function ofGemini(directory) {
  // As in the agent, whose messages for developers go nowhere.
  for (const name of ["log", "warn", "error", "debug", "info"]) console[name] = () => {};
  const core = await import(pathToFileURL(path.join(directory, "dist/index.js")));
  const command = (text) => system(core, { BeforeTool: [{ hooks: [{ type: "command", name: "hook", command: text }] }] });
  const [nothing, program, guard] = [await command("true"), await command("/bin/true"), await command(process.env.GUARD)];
  const inProcess = await system(core, undefined);
  let [ran, fired] = [0, 0];
  for (let number = 0; number < HOOKS; number++) {
    const action = async () => void ran++;
    inProcess.registerHook({ type: "runtime", name: `hook-${number}`, action }, "BeforeTool", { matcher: "Bash" });
  }
  const runtime = async () => {
    await fire(inProcess);
    if (ran < ++fired * HOOKS) throw new Error("a hook did not run");
  };
  return { command: () => fire(nothing), program: () => fire(program), guard: () => fire(guard), runtime };
}

/** Asks the daemon, once a connection is open. */
let asks;

/** Opens a connection to the daemon's socket of lines, as docs/hosts.md shows it. */
async function ofLines(socketPath) {
  const socket = net.connect(socketPath);
  await once(socket, "connect");
  const waiting = new Map();
  let last = 0;
  readline.createInterface({ input: socket }).on("line", (line) => {
    const answer = JSON.parse(line);
    waiting.get(answer.id)(answer);
    waiting.delete(answer.id);
  });
  // The daemon ends a connection on which nothing comes.
  socket.on("close", () => {
    asks = undefined;
    if (waiting.size > 0) throw new Error("the daemon has gone");
  });
  return async () => {
    const id = ++last;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    // Sessions of their own, as those of agents that call tools at the same time.
    socket.write(JSON.stringify({ id, dialect: "gemini", event: event({ session_id: `session-${id % 16}` }) }) + "\n");
    const { error } = await answered;
    if (error) throw new Error(`${error.message}; ${error.hint}`);
  };
}

const overLines = async () => (await (asks ??= ofLines(lines)))();
const ways = { plain, lines: overLines, ...(gemini === "-" ? {} : await ofGemini(gemini)) };
process.stdout.write("ready\n");
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [what, number, atOnce] = line.split(" ");
  let left = Number(number);
  const worker = async () => {
    while (left-- > 0) await ways[what]();
  };
  const begun = process.hrtime.bigint();
  await Promise.all(Array.from({ length: Number(atOnce) }, worker));
  process.stdout.write(`${process.hrtime.bigint() - begun}\n`);
}
process.exit(0);
