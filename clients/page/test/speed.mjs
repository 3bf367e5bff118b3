// What the page costs, against its goals: how fast it is drawn while 5,000 events a second come, and by how much the daemon can
// do less while somebody looks. CHROMIUM and HOOKYARD_PROGRAM, which is a release build, say of what; ROUNDS (7) and DURATION (6) how long.
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { Daemon, sleep } from "./daemon.mjs";

const RATE = 5000;
const ROUNDS = Number(process.env.ROUNDS ?? 7);
const DURATION = Number(process.env.DURATION ?? 6);
const PAINTS = 7;
/// One core is for daemons; loads and the browser have the others.
const DAEMON_CORE = 0;
const CORES = availableParallelism();

const rule = (name, matcher, handler, more = "") => `name: ${name}
events: [before_tool_dispatch, after_tool_dispatch]
matcher: ${matcher}
on_error: ignore
${more}handler: { type: rule, ${handler} }
`;
const HOOKS = {
  "shop/.openharness/hooks/force.yaml": rule("no-force-push", "^Bash$", `deny: 'tool.input.command.contains("push --force")', reason: '"push a branch"'`),
  "shop/.openharness/hooks/root.yaml": rule("no-root", "^(Bash|Write)$", `deny: 'has(tool.input.command) && tool.input.command.contains("sudo")', reason: '"not as root"'`),
  "shop/.openharness/hooks/secrets.yaml": rule("secrets", "^(Bash|Write|Stop)$", `deny: 'has(tool.input.path) && tool.input.path.endsWith(".pem")', reason: '"a key"'`),
  "shop/.openharness/hooks/stopped.yaml": rule("one-in-ten", "^Stop$", `deny: 'true', reason: '"stopped"'`),
  "shop/.openharness/hooks/dry.yaml": rule("dry-run", "^Write$", `patch: { tool_input: '{"mode": "dry-run"}' }`, "capabilities: [rewrite_tool_request]\n").replace(", after_tool_dispatch", ""),
};
const SCENARIO = `description: tool calls with rules
sessions: 64
events_per_run: 500
workspace_id: shop
events:
  - { kind: before_tool_dispatch, match: Bash, weight: 4, payload: [50B, 500B] }
  - { kind: before_tool_dispatch, match: Write, weight: 3, payload: [200B, 2KiB] }
  - { kind: before_tool_dispatch, match: Stop, weight: 1, payload: 50B }
  - { kind: after_tool_dispatch, match: Bash, weight: 2, payload: [200B, 2KiB] }
`;

const core = (which) => ["taskset", "-c", which];
const others = CORES > 1 ? `1-${CORES - 1}` : "0";
const flags = process.getuid() === 0 ? ["--no-sandbox"] : [];
let browser;

async function started(listen = { tcp: "127.0.0.1:0" }, on = core(String(DAEMON_CORE))) {
  const daemon = new Daemon();
  daemon.write("speed.yaml", SCENARIO);
  await daemon.start({ hostile: false, hooks: HOOKS, listen: { lines: join(daemon.directory, "lines.sock"), ...listen }, on });
  // It knows an agent before somebody looks.
  await daemon.event("Bash", { command: "ls" });
  return daemon;
}

/// A load on it, and in the end the report about that.
async function load(daemon, seconds, ...how) {
  const words = ["bench", join(daemon.directory, "speed.yaml"), "--socket", daemon.socket, "--lines", join(daemon.directory, "lines.sock"), "--warm-up", "2s", "--duration", `${seconds}s`, "--json", "-", ...how];
  const { stdout } = await promisify(execFile)(process.env.HOOKYARD_PROGRAM, words, { maxBuffer: 1 << 26 });
  const report = JSON.parse(stdout);
  if (report.failed > 0 || report.ended !== "complete") throw new Error(`the load failed: ${stdout}`);
  return { rate: report.outcomes_per_second, cpu: report.usage.cpu_us_per_event, report };
}

async function signedIn(daemon) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.goto(daemon.link());
  await page.getByRole("table", { name: "agents" }).waitFor();
  return { context, page };
}

/// A client of the stream that does nothing with it.
async function follower(daemon) {
  const asked = request({ socketPath: daemon.socket, path: "/v1/now", agent: false });
  asked.on("error", () => {});
  asked.end();
  const [answer] = await once(asked, "response");
  let [bytes, messages] = [0, 0];
  answer.on("error", () => {});
  answer.on("data", (data) => (messages++, (bytes += data.length)));
  return { end: () => asked.destroy(), seen: () => ({ bytes, messages }) };
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const spread = (values, digits = 1) => `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)} – ${Math.max(...values).toFixed(digits)})`;
const missed = [];
function goal(name, isMet, said) {
  console.log(`${isMet ? "met   " : "MISSED"}  ${name}: ${said}`);
  if (!isMet) missed.push(name);
}

/// How long the browser has used processors, in seconds.
async function browserTime(session) {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo.reduce((sum, it) => sum + it.cpuTime, 0);
}

async function paints(daemon) {
  const [first, ready] = [[], []];
  for (let turn = 0; turn < PAINTS; turn++) {
    const { context, page } = await signedIn(daemon);
    ready.push(await page.evaluate(() => performance.now()));
    first.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity));
    await context.close();
  }
  return { first, ready };
}

/// All share all cores.
async function drawing() {
  const daemon = await started(undefined, []);
  try {
    const idle = await paints(daemon);
    const busy = load(daemon, 40, "--rate", String(RATE));
    await sleep(3000);
    const loaded = await paints(daemon);
    const { context, page } = await signedIn(daemon);
    const session = await browser.newBrowserCDPSession();
    const heap = await context.newCDPSession(page);
    await sleep(3000);
    const before = await browserTime(session);
    const seen = await page.evaluate(async (forMs) => {
      const seen = { frames: 0, longest: 0, drawn: 0, long: 0 };
      new PerformanceObserver((list) => list.getEntries().forEach((entry) => (seen.long += entry.duration))).observe({ type: "longtask" });
      new MutationObserver(() => seen.drawn++).observe(document.querySelector(".tiles"), { subtree: true, characterData: true, childList: true });
      const began = await new Promise(requestAnimationFrame);
      for (let last = began; last - began < forMs; ) {
        const now = await new Promise(requestAnimationFrame);
        seen.frames++;
        seen.longest = Math.max(seen.longest, now - last);
        last = now;
        seen.took = now - began;
      }
      return seen;
    }, 10_000);
    const used = ((await browserTime(session)) - before) / (seen.took / 1000);
    const shown = await page.locator(".tiles dd").first().textContent();
    const stream = await follower(daemon);
    await sleep(3500);
    const { rate } = await busy;
    const { bytes, messages } = stream.seen();
    stream.end();
    await heap.send("HeapProfiler.collectGarbage");
    const { usedSize } = await heap.send("Runtime.getHeapUsage");
    await context.close();
    const frames = seen.frames / (seen.took / 1000);
    console.log(`the page shows ${shown}; ${seen.drawn} drawings in 10 s, ${Math.round(seen.long)} ms in long tasks, ${(100 * used).toFixed(0)} % of a core in the browser`);
    console.log(`heap of the page: ${(usedSize / (1 << 20)).toFixed(1)} MiB; a message has ${messages > 0 ? Math.round(bytes / messages) : "?"} bytes`);
    goal("the load", rate > 0.99 * RATE, `${rate.toFixed(0)} events a second`);
    goal("first paint without a load, at most 200 ms", median(idle.first) <= 200, `${spread(idle.first, 0)} ms; with data after ${spread(idle.ready, 0)} ms`);
    goal(`first paint at ${RATE} events a second, at most 200 ms`, median(loaded.first) <= 200, `${spread(loaded.first, 0)} ms; with data after ${spread(loaded.ready, 0)} ms`);
    goal("60 frames a second", frames > 59, `${frames.toFixed(1)}, the longest took ${seen.longest.toFixed(1)} ms`);
  } finally {
    await daemon.stop();
  }
}

/// Each has a daemon of its own: one goes on counting for ten minutes after its last page is closed.
const READERS = {
  "no page, either": {},
  "no address, and so no history of payloads": { listen: { tcp: null } },
  "a client of the stream": { open: async (daemon) => (await follower(daemon)).end },
  "the page, Now": { open: async (daemon) => { const { context } = await signedIn(daemon); return () => context.close(); } },
  "the page, in a tab behind another": {
    open: async (daemon) => {
      const { context } = await signedIn(daemon);
      await (await context.newPage()).bringToFront();
      return () => context.close();
    },
  },
};

/// What a daemon with a reader does, in percent of what one without does at the same time on the same core, each with a load of
/// its own. So whatever else the machine has to do meanwhile is the same for both.
async function pair({ listen, open = async () => async () => {} }) {
  const daemons = [await started(listen), await started()];
  try {
    const end = await open(daemons[0]);
    const [it, none] = await Promise.all(daemons.map((daemon) => load(daemon, DURATION, "--concurrency", "64")));
    await end();
    return { rate: it.rate, cpu: it.cpu, rates: (100 * it.rate) / none.rate, costs: (100 * it.cpu) / none.cpu };
  } finally {
    await Promise.all(daemons.map((daemon) => daemon.stop()));
  }
}

async function throughput() {
  const names = Object.keys(READERS);
  const rounds = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(turn + round) % names.length];
      rounds[name].push(await pair(READERS[name]));
    }
  }
  console.log(`${ROUNDS} rounds of ${DURATION} s, medians (least – most), beside a daemon without a page; both on core ${DAEMON_CORE}, loads and browser on ${others}`);
  for (const name of names) {
    const of = (key) => rounds[name].map((round) => round[key]);
    const figures = `${spread(of("rates"))} % of the events, ${spread(of("costs"))} % of the processor for each (${median(of("cpu")).toFixed(1)} µs)`;
    if (name.startsWith("no ")) console.log(`        ${name}: ${figures}`);
    else goal(`${name}, at least 97 %`, median(of("rates")) >= 97, figures);
  }
}

try {
  if (CORES < 2) throw new Error("needs two cores: one for the daemon, and one for the load and the browser");
  const launch = async () => (browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags }));
  if (process.env.ONLY !== "throughput") {
    await launch();
    await drawing();
    await browser.close();
  }
  if (process.env.ONLY !== "drawing") {
    // What this process starts stays with it; daemons are put elsewhere.
    execFileSync("taskset", ["-a", "-p", "-c", others, String(process.pid)], { stdio: "ignore" });
    await launch();
    await throughput();
  }
} finally {
  await browser?.close();
}
process.exitCode = missed.length > 0 ? 1 : 0;
