// A daemon with workspaces and hooks as people have them, and with texts as attackers send them; and a load for it.
import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync, chmodSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const PROGRAM = process.env.HOOKYARD_PROGRAM;

/// What would run, load or close something if a page took it for markup.
export const HOSTILE = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>\u202e{{7*7}}`;

const HOOKS = {
  "shop/.openharness/hooks/no-force-push.yaml": `name: no-force-push
events: [before_tool_dispatch]
matcher: ^(Bash|Shell)$
priority: 10
on_error: deny
on_timeout: deny
handler:
  type: rule
  rules:
    - name: force
      deny: tool.input.command.contains("push --force")
      reason: '"force pushes are not allowed here: push a branch, and open a pull request"'
    - name: root
      ask: tool.input.command.contains("sudo")
      reason: '"it runs as root: " + tool.input.command'
`,
  "shop/.openharness/hooks/policy.yaml": `name: policy-server
events: [before_tool_dispatch]
matcher: ^(Write|Bash)$
on_error: deny
handler:
  type: command
  command: 'sleep 0.03; if grep -q unreachable; then echo "the policy server does not answer" >&2; exit 1; fi'
`,
  "shop/.openharness/hooks/format.yaml": `name: dry-run
events: [before_tool_dispatch]
matcher: ^Write$
capabilities: [rewrite_tool_request]
handler:
  type: rule
  patch:
    tool_input: '{"mode": "dry-run"}'
`,
  "billing/.openharness/hooks/currency.yaml": `name: currency
events: [before_tool_dispatch]
matcher: ^Pay$
priority: 10
capabilities: [rewrite_tool_request]
handler: { type: rule, patch: { tool_input: '{"currency": "EUR"}' } }
`,
  "billing/.openharness/hooks/limit.yaml": `name: limit
events: [before_tool_dispatch]
matcher: ^(Pay|Order)$
priority: 20
capabilities: [rewrite_tool_request]
handler: { type: rule, patch: { tool_input: '{"amount": 100}' } }
`,
  "billing/.openharness/hooks/parties.yaml": `name: parties
events: [before_tool_dispatch]
matcher: ^Order$
priority: 10
capabilities: [rewrite_tool_request]
handler: { type: rule, patch: { tool_input: '{"from": "shop", "to": "shop"}' } }
`,
  "billing/.openharness/hooks/person.yaml": `name: person
events: [before_tool_dispatch]
matcher: ^Pay$
priority: 30
handler: { type: rule, rules: [{ deny: tool.input.amount == 100 && tool.input.to == "stranger", reason: '"ask a person"' }] }
`,
  "shop/.openharness/hooks/review.yaml": `name: review
events: [before_tool_dispatch]
matcher: ^Deploy$
handler: { type: command, command: 'sleep 600', timeout_seconds: 600 }
`,
  "billing/.openharness/hooks/audit-trail.yaml": `name: audit-trail
events: [after_tool_dispatch]
handler: { type: command, command: 'exit 0' }
`,
  "billing/.openharness/hooks/counter.yaml": `name: counter
events: [before_tool_dispatch]
matcher: ^Count$
handler: { type: command, mode: worker, workers: 2, command: exec node .openharness/scripts/counter.mjs }
`,
  "billing/.openharness/scripts/counter.mjs": `import { createInterface } from "node:readline";
console.log('{"hookyard":1}');
for await (const line of createInterface({ input: process.stdin })) {
  const { id } = JSON.parse(line);
  if (line.includes("crash")) process.exit(1);
  if (id !== undefined) setTimeout(() => console.log(JSON.stringify({ id, output: {} })), line.includes("slow") ? 3000 : 0);
}
`,
  "hostile/.openharness/hooks/hostile.yaml": `name: hostile
events: [before_tool_dispatch]
handler:
  type: command
  command: |
    cat >&2 <<'END'
    ${HOSTILE}
    END
    exit 2
`,
  "hostile/.openharness/hooks/<img src=x onerror=alert(1)>.yaml": "name: [\n",
  "broken/.openharness/hooks/guard.yaml": "name: guard\nevents: [before_tool]\nhandler: { type: command, command: 'exit 0' }\n",
};

export class Daemon {
  constructor() {
    this.directory = mkdtempSync(join(tmpdir(), "hookyard-page-"));
    this.socket = join(this.directory, "hookyard.sock");
    this.agent = new Agent({ keepAlive: true, maxSockets: 32 });
  }

  /// Starts it, and waits until it takes events. Without `hostile`, it has no workspace of an attacker; with `trust: "enforce"`,
  /// it runs only what somebody has agreed to. `listen` has its addresses, and `on` what is to stand before its command.
  async start({ hostile: isAttacked = true, trust = "off", hooks = HOOKS, listen = { tcp: "127.0.0.1:0" }, on = [] } = {}) {
    for (const [path, text] of Object.entries(hooks)) this.write(path, text);
    mkdirSync(join(this.directory, "home"), { recursive: true });
    const root = (name) => JSON.stringify(join(this.directory, name));
    const hostile = JSON.stringify(HOSTILE);
    this.write(
      "hookyard.yaml",
      `listen: ${JSON.stringify(listen)}
trust: ${trust}
node: shop-1
workspaces:
  shop: { root: ${root("shop")} }
  billing: { root: ${root("billing")} }
  broken: { root: ${root("broken")} }
${isAttacked ? `  ${hostile}: { root: ${root("hostile")} }\n` : ""}`,
    );
    const command = [...on, PROGRAM, "serve", "--home", join(this.directory, "home"), "--config", join(this.directory, "hookyard.yaml"), "--socket", this.socket];
    this.process = spawn(command[0], command.slice(1), {
      cwd: this.directory,
      env: { ...process.env, XDG_STATE_HOME: join(this.directory, "state"), XDG_DATA_HOME: join(this.directory, "data") },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.log = "";
    this.process.stderr.on("data", (text) => (this.log += text));
    this.ended = new Promise((resolve) => this.process.on("exit", resolve));
    for (let tries = 0; tries < 600; tries++) {
      const status = await this.send("GET", "/v1/status").catch(() => undefined);
      if (status?.phase === "ready") return this;
      if (this.process.exitCode !== null) break;
      await sleep(100);
    }
    throw new Error(`the daemon did not start:\n${this.log}`);
  }

  write(path, text) {
    const file = join(this.directory, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    if (path.startsWith("token")) chmodSync(file, 0o600);
  }

  send(method, path, body) {
    return this.sendText(method, path, body === undefined ? undefined : JSON.stringify(body));
  }

  sendText(method, path, body) {
    return new Promise((resolve, reject) => {
      const asked = request({ socketPath: this.socket, method, path, agent: this.agent, headers: { "content-type": "application/json" } }, (answer) => {
        let text = "";
        answer.on("data", (part) => (text += part));
        answer.on("end", () => {
          try {
            resolve(JSON.parse(text));
          } catch (error) {
            reject(error);
          }
        });
      });
      asked.on("error", reject);
      asked.end(body);
    });
  }

  /// An event of a tool call.
  event(tool, input, more = {}) {
    return this.send("POST", "/v1/events", {
      event: "before_tool_dispatch",
      workspace_id: "shop",
      session_id: "session-1",
      run_id: "run-1",
      tool_name: tool,
      tool_input: input,
      ...more,
    });
  }

  /// The link that `hookyard ui` prints.
  link(...flags) {
    const text = execFileSync(PROGRAM, ["ui", "--no-open", "--json", "--socket", this.socket, ...flags], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
    return JSON.parse(text).url;
  }

  /// Sends events until it is stopped; returns how many were answered, in the end.
  load(events, connections = 16) {
    let [running, sent] = [true, 0];
    const one = async (number) => {
      for (let turn = number; running; turn++) {
        const [tool, input, more] = events[turn % events.length];
        await this.event(tool, input, { run_id: `run-${number}`, ...more });
        sent++;
      }
    };
    const all = Promise.all(Array.from({ length: connections }, (_, number) => one(number)));
    return async () => {
      running = false;
      await all;
      return sent;
    };
  }

  async stop() {
    this.agent.destroy();
    if (this.process?.exitCode === null) this.process.kill("SIGTERM");
    const late = setTimeout(() => this.process?.kill("SIGKILL"), 30_000);
    await this.ended;
    clearTimeout(late);
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
