// The page in a real browser, at a real daemon under load. CHROMIUM and HOOKYARD_PROGRAM say which.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { Daemon, HOSTILE, sleep } from "./daemon.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const LONGEST = 60_000;

let browser;
let daemon;
let stopLoad;

before(async () => {
  // Without a sandbox of its own only where it runs as root, as in the containers of a CI.
  const flags = process.getuid() === 0 ? ["--no-sandbox"] : [];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });
  daemon = await new Daemon().start();
  await daemon.event("Write", { path: "src/checkout.ts", mode: "write" }, { run_id: "writes" });
  await daemon.event("Bash", { command: "git push --force origin main" }, { run_id: "pushes" });
  await daemon.event("Bash", { command: "curl unreachable" }, { run_id: "fails" });
  await daemon.event(HOSTILE, { command: HOSTILE }, { workspace_id: HOSTILE, run_id: HOSTILE, session_id: HOSTILE });
  stopLoad = daemon.load([
    ["Bash", { command: "git push --force" }],
    ["Write", { path: "a.ts", mode: "write" }],
    ["Bash", { command: "sudo make install" }],
    ["Bash", { command: "curl unreachable" }],
    [HOSTILE, { command: HOSTILE }, { workspace_id: HOSTILE, run_id: HOSTILE, session_id: HOSTILE }],
  ], 4);
});

after(async () => {
  await stopLoad?.();
  await browser?.close();
  await daemon?.stop();
});

/// A window that has signed in, and what went wrong in it.
async function open(flags = [], options = {}, at = daemon) {
  const context = await browser.newContext({ viewport: DESKTOP, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(LONGEST);
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => wrong.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  page.on("console", (message) => message.type() === "error" && wrong.push(`console: ${message.text()}`));
  const link = at.link(...flags);
  const origin = new URL(link).origin;
  page.on("request", (request) => new URL(request.url()).origin === origin || wrong.push(`request: ${request.url()}`));
  await page.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  await page.goto(link);
  await page.getByRole("heading", { level: 1, name: "Now" }).waitFor();
  return { context, page, wrong, origin, link };
}

async function close({ context, wrong }) {
  await context.close();
  assert.deepEqual(wrong, []);
}

/// What axe finds serious on a page.
async function serious(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter((it) => ["serious", "critical"].includes(it.impact));
  return bad.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
}

function row(page, table, name) {
  return page.getByRole("table", { name: table }).getByRole("row").filter({ hasText: name }).first();
}

test("a link signs in once, and leaves no secret in the address", async () => {
  const window = await open();
  const { page, link } = window;
  assert.equal(new URL(page.url()).hash, "#/now");
  const cookies = await window.context.cookies();
  assert.equal(cookies.length, 1);
  assert.deepEqual([cookies[0].httpOnly, cookies[0].sameSite], [true, "Strict"]);
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Now" }).waitFor();
  await close(window);
  const context = await browser.newContext();
  const again = await context.newPage();
  await again.goto(link);
  await again.getByRole("alert").filter({ hasText: "the link was used before, or has expired" }).waitFor();
  assert.equal(await again.getByText("may read").count(), 0);
  await context.close();
});

test("now: hooks with their rates, verdicts and last failure, live", async () => {
  const window = await open();
  const { page } = window;
  const guard = row(page, "hooks that ran", "no-force-push");
  await guard.getByText("block").waitFor();
  await guard.getByText(/\/s$/).waitFor();
  const failing = row(page, "hooks that ran", "policy-server");
  await failing.getByText("the policy server does not answer").waitFor();
  await failing.getByText(/\d ms$/).first().waitFor();
  const events = page.locator(".tiles div").filter({ hasText: "Blocked or halted" }).locator("dd");
  const shown = await events.textContent();
  await page.waitForFunction(([element, former]) => element.textContent !== former, [await events.elementHandle(), shown]);
  await row(page, "pools of handlers", "command").getByText(/of \d/).waitFor();
  await row(page, "agents", "canonical").waitFor();
  await page.getByText("Needs attention").waitFor();
  await close(window);
});

test("now: workers, how many are busy, and those that failed", async () => {
  const window = await open();
  const count = (input) => daemon.event("Count", input, { workspace_id: "billing", run_id: "counted" });
  await count({ then: "crash" });
  const slow = count({ then: "slow" });
  const cells = row(window.page, "workers of hooks", "counter").getByRole("cell");
  await cells.filter({ hasText: "1 of 2" }).waitFor();
  await cells.filter({ hasText: /^✕ 1$/ }).waitFor();
  await window.page.waitForFunction(([busy]) => busy.textContent === "1", [await cells.nth(1).elementHandle()]);
  await slow;
  await window.page.waitForFunction(([busy]) => busy.textContent === "0", [await cells.nth(1).elementHandle()]);
  await close(window);
});

for (const width of [390, 800, 970, 1280]) {
  test(`no word of a narrow column is broken, and nothing is wider than its place, at ${width}`, async () => {
    const window = await open([], { viewport: { width, height: 900 } });
    const { page } = window;
    await row(page, "agents", "canonical").waitFor();
    const isWide = () => [document.documentElement, ...document.querySelectorAll(".columns .table")].some((it) => it.scrollWidth > it.clientWidth);
    assert.equal(await page.evaluate(isWide), false);
    await page.goto(`${window.origin}/#/runs-what/shop`);
    await row(page, "hooks of shop", "policy-server").waitFor();
    const { broken, wide } = await page.evaluate(() => {
      const broken = [];
      const isWide = (element) => element.scrollWidth > element.clientWidth;
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        if (text.parentElement.closest("pre, .command, .unseen")) continue;
        for (const { 0: word, index } of text.data.matchAll(/\w+/g)) {
          const range = new Range();
          range.setStart(text, index);
          range.setEnd(text, index + word.length);
          if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(word);
        }
      }
      return { broken, wide: [document.documentElement, ...document.querySelectorAll(".table")].filter(isWide).length };
    });
    assert.deepEqual([broken, wide], [[], 0]);
    await close(window);
  });
}

test("now: a click sorts, and a screen reader is told", async () => {
  const window = await open();
  const { page } = window;
  const failures = page.getByRole("columnheader", { name: "Failures" });
  await failures.getByRole("button").click();
  assert.equal(await failures.getAttribute("aria-sort"), "descending");
  await failures.getByRole("button").press("Enter");
  assert.equal(await failures.getAttribute("aria-sort"), "ascending");
  await close(window);
});

test("why: a decision is found and shown as a timeline, at an address to send to others", async () => {
  const window = await open();
  const { page } = window;
  await page.getByRole("link", { name: "Why", exact: true }).click();
  await page.getByLabel("Run or session").fill("pushes");
  await page.getByLabel("Verdict").selectOption("block");
  await page.getByRole("button", { name: "Search" }).click();
  const found = page.getByRole("table", { name: "decisions" });
  await found.getByText("force pushes are not allowed here").waitFor();
  assert.equal(await found.getByRole("row").count(), 2, "a head and one row");
  await found.getByRole("rowheader").getByRole("link").click();
  await page.getByText("Decided by the hook no-force-push.").waitFor();
  await page.getByRole("img", { name: /waited .*, ran / }).first().waitFor();
  const other = await window.context.newPage();
  await other.goto(page.url());
  await other.getByText("Decided by the hook no-force-push.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Show the payload" }).count(), 0, "a reader is shown no payload");
  await page.getByText("What an event carries may be confidential").waitFor();
  await close(window);
});

test("why: who may control sees what hooks changed", async () => {
  const window = await open(["--control"]);
  const { page, origin } = window;
  await page.goto(`${origin}/#/why?run=writes`);
  await page.getByRole("table", { name: "decisions" }).getByText("payload changed").waitFor();
  await page.getByRole("rowheader").getByRole("link").click();
  await page.getByRole("button", { name: "Show the payload" }).click();
  const changes = page.getByLabel("tool_input: changes");
  await changes.locator(".removed", { hasText: '"mode": "write"' }).waitFor();
  await changes.locator(".added", { hasText: '"mode": "dry-run"' }).waitFor();
  await close(window);
});

test("why: who may control sees what each hook changed, one after the other, also of what was blocked", async () => {
  const window = await open(["--control"]);
  const { page, origin } = window;
  for (const [to, verdict] of [["friend", "proceed"], ["stranger", "block"]]) {
    const paid = await daemon.event("Pay", { to, amount: 900 }, { workspace_id: "billing", run_id: `pays-${to}` });
    assert.equal(paid.verdict, verdict);
    await page.goto(`${origin}/#/why/${paid.decision_id}`);
    await page.getByRole("button", { name: "Show the payload" }).click();
    const currency = page.getByLabel("currency: tool_input: changes");
    await currency.locator(".added", { hasText: '"currency": "EUR"' }).waitFor();
    assert.equal(await currency.locator(".added", { hasText: "100" }).count(), 0);
    const limit = page.getByLabel("limit: tool_input: changes");
    await limit.locator(".removed", { hasText: '"amount": 900' }).waitFor();
    await limit.locator(".added", { hasText: '"amount": 100' }).waitFor();
    assert.equal(await limit.locator(".added", { hasText: "EUR" }).count(), 0);
    assert.equal(await page.getByText("the event was stopped").count(), verdict === "block" ? 2 : 0);
  }
  const items = Array.from({ length: 1200 }, (_, number) => number);
  for (const [item, isKept] of [["item", true], ["x".repeat(2000), false]]) {
    const input = { from: "a", items: items.map((number) => item + number), to: "b", amount: 900 };
    const ordered = await daemon.event("Order", input, { workspace_id: "billing", run_id: "orders" });
    await page.goto(`${origin}/#/why/${ordered.decision_id}`);
    await page.getByText("No hook stopped it; hooks changed its payload.").waitFor();
    await page.getByRole("button", { name: "Show the payload" }).click();
    await page.getByRole("heading", { name: "parties changed tool_input", exact: true }).waitFor();
    const isLost = page.getByText("What it made of it is too large to be kept.");
    assert.equal(await isLost.count(), isKept ? 0 : 2);
    if (isKept) assert.match(await page.getByLabel("parties: tool_input", { exact: true }).textContent(), /"from": "shop",[^]*"item1199"/);
    else await page.getByText("one of more than 1 MiB or of before the daemon's start, which is not kept").waitFor();
  }
  await close(window);
});

test("why: who may control sees what each hook was told, and which expression decided", async () => {
  const window = await open(["--control"]);
  const { page, origin } = window;
  await page.goto(`${origin}/#/why?run=pushes`);
  await page.getByRole("rowheader").getByRole("link").first().click();
  await page.getByRole("button", { name: "Show what each was told" }).click();
  const expressions = page.getByLabel("no-force-push: expressions");
  await expressions.locator(".decides", { hasText: "force deny is true" }).waitFor();
  await expressions.getByText("git push --force origin main").first().waitFor();
  await page.goto(`${origin}/#/why?run=writes`);
  await page.getByRole("rowheader").getByRole("link").first().click();
  await page.getByRole("button", { name: "Show what each was told" }).click();
  await page.getByText("Hooks before it had changed tool_input.").waitFor();
  await page.getByText("What policy-server was told").click();
  await page.getByLabel("policy-server: input").getByText('"mode": "dry-run"').waitFor();
  assert.deepEqual(await serious(page), []);
  await close(window);
});

test("why: an empty search says what to do", async () => {
  const window = await open();
  await window.page.goto(`${window.origin}/#/why?run=nobody`);
  await window.page.getByText("No decision that is kept fits this search").waitFor();
  await close(window);
});

test("what if: an event has its plan, with what rules make of it, and nothing runs", async () => {
  const window = await open();
  const { page } = window;
  await page.getByLabel("Pages").getByRole("link", { name: "What if" }).click();
  await page.getByLabel("Workspace").selectOption("shop");
  await page.getByRole("button", { name: "Show its plan" }).click();
  await page.getByLabel("no-force-push: expressions").locator(".decides", { hasText: "force deny is true" }).waitFor();
  await page.locator("dt", { hasText: "dry-run" }).waitFor();
  await page.getByLabel("Event, as JSON").fill(JSON.stringify({ event: HOSTILE }));
  await page.getByRole("button", { name: "Show its plan" }).click();
  await page.getByText(/event/).first().waitFor();
  await page.getByRole("alert").waitFor();
  assert.deepEqual(await serious(page), []);
  window.wrong = window.wrong.filter((text) => !text.includes("400"));
  await close(window);
});

/// What a text area has.
function written(page, label) {
  return page.getByLabel(label).inputValue();
}

test("what if: an event of the history is tried with every digit of its numbers", async () => {
  const window = await open(["--control"]);
  const { page, origin } = window;
  // As text: JavaScript has no such numbers.
  const event = '{"event":"before_tool_dispatch","workspace_id":"shop","session_id":"s","run_id":"digits","tool_name":"Bash","tool_input":{"command":"ls","big":9007199254740993,"cent":1.10}}';
  const { decision_id } = await daemon.sendText("POST", "/v1/events", event);
  await page.goto(`${origin}/#/why/${decision_id}`);
  await page.getByRole("button", { name: "Show the payload" }).click();
  const payload = page.getByLabel("tool_input", { exact: true });
  await payload.getByText("9007199254740993").waitFor();
  assert.match(await payload.textContent(), /"big": 9007199254740993,\n  "cent": 1.10/);
  await page.getByRole("button", { name: "Show what each was told" }).click();
  await page.getByText("What policy-server was told").click();
  assert.match(await page.getByLabel("policy-server: input").textContent(), /9007199254740993[^]*1\.10/);
  await page.getByRole("link", { name: "Try this event" }).click();
  await page.getByRole("button", { name: "Show its plan" }).waitFor();
  const sent = await written(page, "Event, as JSON");
  assert.match(sent, /"big": 9007199254740993,\s+"cent": 1.10/);
  await page.waitForFunction(() => document.querySelector("select[name=workspace]").value === "shop");
  await page.getByRole("button", { name: "Show its plan" }).click();
  await page.getByLabel("no-force-push: expressions").getByText("deny is").waitFor();
  await page.locator("dt", { hasText: "dry-run" }).waitFor();
  const large = await daemon.event("Bash", { command: "x".repeat(2 << 20) }, { run_id: "large" });
  await page.goto(`${origin}/#/what-if?decision=${large.decision_id}`);
  await page.getByText("Its payload is not kept").waitFor();
  await page.goto(`${origin}/#/what-if`);
  await page.getByLabel("One of the last events").selectOption({ index: 0 });
  await page.getByRole("button", { name: "Use it" }).click();
  await page.getByRole("link", { name: /^the decision/ }).waitFor();
  await close(window);
});

test("what if: a rule is edited and tried with the last events, and not saved", async () => {
  const other = await new Daemon().start({ hostile: false });
  for (const [command, run_id] of [["ls", "r1"], ["git push --force", "r2"], ["git push", "r3"], ["sudo ls", "r4"]]) await other.event("Bash", { command }, { run_id });
  for (const [colorScheme, viewport] of [["light", DESKTOP], ["dark", PHONE]]) {
    const window = await open(["--control"], { colorScheme, viewport }, other);
    const { page, origin } = window;
    await page.goto(`${origin}/#/what-if`);
    await page.getByRole("link", { name: "a rule were another" }).click();
    await page.getByLabel("Workspace").selectOption("shop");
    await page.getByLabel(/^Rule/).selectOption("no-force-push");
    await page.getByRole("button", { name: "Edit it here" }).press("Enter");
    const area = page.getByLabel(/as its hook file/);
    await area.waitFor();
    const text = await area.inputValue();
    assert.match(text, /^name: no-force-push\n/);
    await area.fill(text.replace("push --force", "push"));
    await page.getByRole("button", { name: "Try it" }).press("Enter");
    await page.getByText("1 event would change").waitFor();
    const verdict = (name) => row(page, "verdicts", name).getByRole("cell").allTextContents();
    assert.deepEqual(await verdict("proceed"), ["2", "1"]);
    assert.deepEqual(await verdict("block"), ["1", "2"]);
    assert.deepEqual(await verdict("ask"), ["1", "1"]);
    const changed = row(page, "events that change", "r3");
    await changed.getByText("by no-force-push").waitFor();
    assert.deepEqual(await serious(page), []);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${overflow} pixels too wide`);
    await area.fill(text.replace("contains", "contain"));
    await page.getByRole("button", { name: "Try it" }).press("Enter");
    await page.getByLabel(/^error in line/).getByText("^^^^^^^").waitFor();
    await page.getByRole("button", { name: /^Go to line/ }).press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)), "contain");
    assert.deepEqual(await serious(page), []);
    await area.fill("name: new\nevents: [before_tool_dispatch]\nhandler: { type: command, command: 'touch started' }\n");
    await page.getByRole("button", { name: "Try it" }).press("Enter");
    await page.getByRole("alert").filter({ hasText: "only handlers of the type `rule` can be tried" }).waitFor();
    window.wrong = window.wrong.filter((text) => !text.includes("400"));
    await page.goto(`${origin}/#/why`);
    await row(page, "decisions", "r3").getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: "before_tool_dispatch" }).waitFor();
    await close(window);
  }
  const reader = await open([], {}, other);
  await reader.page.goto(`${reader.origin}/#/what-if/rule`);
  await reader.page.getByText("hookyard ui --control").waitFor();
  await close(reader);
  await other.stop();
});

test("what runs: hooks with level, file and content, and mistakes with their place", async () => {
  const window = await open();
  const { page } = window;
  await page.getByLabel("Pages").getByRole("link", { name: "What runs" }).click();
  await row(page, "workspaces", "broken").getByText("1 error").waitFor();
  await page.getByRole("link", { name: "shop", exact: true }).click();
  const guard = row(page, "hooks of shop", "no-force-push");
  await guard.getByText(/no-force-push\.yaml:1/).waitFor();
  await guard.getByText("project").waitFor();
  await guard.getByText(/content [0-9a-f]{12}/).waitFor();
  await page.goto(`${window.origin}/#/runs-what/broken`);
  await page.getByText(/guard\.yaml:2:\d+/).waitFor();
  await page.getByText(/unknown event/).first().waitFor();
  await close(window);
});

/// A daemon with hooks that nobody has agreed to, among them those of an attacker.
async function untrusted() {
  const other = new Daemon();
  other.write("shop/.openharness/hooks/lint.yaml", "name: lint\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\non_error: deny\nhandler: { type: command, command: sh .openharness/scripts/lint.sh }\n");
  other.write("shop/.openharness/scripts/lint.sh", "exit 0\n");
  other.write(`hostile/.openharness/scripts/${HOSTILE.replaceAll("/", "%")}.sh`, HOSTILE);
  return other.start({ trust: "enforce" });
}

test("trust: a reader is told of the command, and may neither look nor agree", async () => {
  const other = await untrusted();
  const window = await open([], {}, other);
  const { page } = window;
  await page.goto(`${window.origin}/#/runs-what/shop`);
  await page.getByText("hookyard ui --control").waitFor();
  assert.equal(await page.getByRole("button", { name: /Agree|Revoke|Show what the hooks run/ }).count(), 0);
  const refused = await page.evaluate(async () => {
    const headers = { "x-hookyard-page": localStorage.getItem("hookyard-page-token"), "content-type": "application/json" };
    const ask = async (method, body) => (await fetch("/v1/workspaces/shop/trust", { method, headers, body })).status;
    return [await ask("GET"), await ask("POST", JSON.stringify({ digest: "0".repeat(64) })), await ask("DELETE")];
  });
  assert.deepEqual(refused, [403, 403, 403]);
  window.wrong.splice(0); // The browser tells of them.
  await close(window);
  await other.stop();
});

test("trust: who may control sees what changed and agrees to exactly that, and takes it back", async () => {
  const other = await untrusted();
  const window = await open(["--control"], {}, other);
  const { page } = window;
  const lint = () => row(page, "hooks of shop", "lint");
  const agree = async () => {
    await page.getByRole("button", { name: "Agree to exactly this" }).click();
    await page.getByRole("button", { name: /^Really agree/ }).click();
  };
  await page.goto(`${window.origin}/#/runs-what/shop`);
  await lint().getByText("does not run: untrusted").waitFor();
  assert.equal((await other.event("Bash", { command: "ls" }, { run_id: "before" })).verdict, "block");
  await page.getByRole("button", { name: "Show what the hooks run" }).click();
  await page.getByLabel("lint: definition").getByText("sh .openharness/scripts/lint.sh").waitFor();
  await page.getByLabel(".openharness/scripts/lint.sh: changes").locator(".added", { hasText: "exit 0" }).waitFor();
  await agree();
  await page.getByText("Everything is trusted as it is.").waitFor();
  await lint().getByText("runs, trusted").waitFor();
  assert.notEqual((await other.event("Bash", { command: "ls" }, { run_id: "after" })).verdict, "block");

  other.write("shop/.openharness/scripts/lint.sh", "exit 2 # changed\n");
  await lint().getByText("does not run: modified").waitFor();
  await page.getByRole("button", { name: "Look again" }).click();
  const changes = page.getByLabel(".openharness/scripts/lint.sh: changes");
  await changes.locator(".removed", { hasText: "exit 0" }).waitFor();
  await changes.locator(".added", { hasText: "exit 2 # changed" }).waitFor();
  // Somebody changes it once more while a person reads.
  other.write("shop/.openharness/scripts/lint.sh", "exit 0 # sneaked in\n");
  await agree();
  await page.getByRole("alert").filter({ hasText: "not what was shown any more" }).waitFor();
  await lint().getByText("does not run: modified").waitFor();
  window.wrong.splice(0); // The browser tells of the 409.
  await page.getByRole("button", { name: "Try again" }).click();
  await changes.locator(".added", { hasText: "sneaked in" }).waitFor();
  await agree();
  await lint().getByText("runs, trusted").waitFor();

  await page.getByRole("button", { name: "Revoke trust in lint" }).click();
  await page.getByRole("button", { name: "Really revoke trust in lint" }).click();
  await page.getByText("The trust in lint is taken back.").waitFor();
  await lint().getByText("does not run: untrusted").waitFor();
  await row(page, "hooks of shop", "no-force-push").getByText("runs, trusted").waitFor();
  await close(window);
  await other.stop();
});

test("trust: hostile files are text, and axe finds nothing serious", async () => {
  const other = await untrusted();
  for (const colorScheme of ["light", "dark"]) {
    for (const viewport of [DESKTOP, PHONE]) {
      const window = await open(["--control"], { colorScheme, viewport }, other);
      const { page } = window;
      await page.goto(`${window.origin}/#/runs-what/${encodeURIComponent(HOSTILE)}`);
      await page.getByRole("button", { name: "Show what the hooks run" }).click();
      await page.getByRole("heading", { level: 4, name: "<script>window.pwned=1" }).waitFor();
      await page.locator("pre .added", { hasText: "<script>window.pwned=1</script>" }).first().waitFor();
      assert.ok(!(await page.locator("body").textContent()).includes("\u202e"), "no text reorders what stands after it");
      assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
      assert.equal(await page.locator("img, main script, iframe, object").count(), 0);
      assert.deepEqual(await serious(page), []);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} pixels too wide`);
      await close(window);
    }
  }
  await other.stop();
});

test("settings: each has its value and where it came from; a reader sees none", async () => {
  const window = await open(["--control"]);
  const { page } = window;
  await page.getByLabel("Pages").getByRole("link", { name: "Settings" }).click();
  const tcp = row(page, "settings", "listen.tcp");
  await tcp.getByText("127.0.0.1:0").waitFor();
  await tcp.getByText(/hookyard\.yaml:1$/).waitFor();
  await row(page, "settings", "listen.socket").getByText("--socket").waitFor();
  assert.equal(await row(page, "settings", "limits.runs").count(), 0);
  await page.getByLabel("Filter").fill("limits.runs");
  await row(page, "settings", "limits.runs").getByText("the default").waitFor();
  await close(window);
  const reader = await open();
  await reader.page.goto(`${reader.origin}/#/settings`);
  await reader.page.getByText("Settings name files and servers").waitFor();
  await close(reader);
});

test("runs: a reader cannot cancel; who may control can, at the second click", async () => {
  const waiting = daemon.event("Deploy", { to: "production" }, { run_id: "deploys" });
  const reader = await open();
  await row(reader.page, "runs", "deploys").getByText(/before_tool_dispatch at review/).waitFor();
  assert.equal(await reader.page.getByRole("button", { name: /^Cancel run/ }).count(), 0);
  const refused = await reader.page.evaluate(async () => {
    const headers = { "x-hookyard-page": localStorage.getItem("hookyard-page-token") };
    return (await fetch("/v1/runs/deploys", { method: "DELETE", headers })).status;
  });
  assert.equal(refused, 403);
  reader.wrong.splice(0); // The browser tells of the 403.
  const window = await open(["--control"]);
  await window.page.getByLabel("Filter").fill("deploys");
  await window.page.getByRole("button", { name: "Cancel run deploys" }).click();
  await window.page.getByRole("button", { name: "Confirm: cancel run deploys" }).click();
  assert.equal((await waiting).verdict, "halt");
  await window.page.getByText("None of the").or(window.page.getByText("No run has work")).waitFor();
  await close(window);
  await close(reader);
});

test("nothing from an event, a hook or a file is markup", async () => {
  const window = await open(["--control"]);
  const { page, origin } = window;
  await row(page, "hooks that ran", "hostile").waitFor();
  await row(page, "runs", "onerror").waitFor();
  await page.goto(`${origin}/#/why?${new URLSearchParams({ run: HOSTILE })}`);
  await page.getByRole("table", { name: "decisions" }).getByText("<script>window.pwned=1</script>").first().waitFor();
  await page.getByRole("rowheader").getByRole("link").first().click();
  await page.getByRole("button", { name: "Show the payload" }).click();
  await page.locator("pre", { hasText: "onerror" }).first().waitFor();
  await page.goto(`${origin}/#/runs-what/${encodeURIComponent(HOSTILE)}`);
  await page.getByText("<img src=x onerror=alert(1)>.yaml").first().waitFor();
  await page.goto(`${origin}/#/${encodeURIComponent(HOSTILE)}/${encodeURIComponent(HOSTILE)}`);
  await page.getByText("This page does not exist").waitFor();
  for (const place of ["now", "why", "runs-what"]) {
    await page.goto(`${origin}/#/${place}`);
    await page.locator("main").getByText("\\u202e").first().waitFor();
    assert.ok(!(await page.locator("body").textContent()).includes("\u202e"), `${place}: no text reorders what stands after it`);
  }
  assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  assert.equal(await page.locator("img, main script, iframe, object").count(), 0);
  await close(window);
});

for (const colorScheme of ["light", "dark"]) {
  for (const [name, viewport] of [["a desktop", DESKTOP], ["a phone", PHONE]]) {
    test(`axe finds nothing serious on ${name}, ${colorScheme}`, async () => {
      const window = await open(["--control"], { colorScheme, viewport });
      const { page, origin } = window;
      const places = [["now", "Needs attention"], ["why", "run-1"], ["why?run=nobody", "No decision"], ["runs-what", "billing"], ["runs-what/shop", "review.yaml:1"], ["runs-what/broken", "help:"], ["settings", "listen.tcp"], ["what-if", "Show its plan"], ["what-if/rule?workspace=shop", "Try it"]];
      for (const [place, text] of places) {
        await page.goto(`${origin}/#/${place}`);
        await page.locator("main").getByText(text).first().waitFor();
        assert.deepEqual(await serious(page), [], place);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${place} is ${overflow} pixels too wide`);
      }
      await page.goto(`${origin}/#/why?run=writes`);
      await page.getByRole("rowheader").getByRole("link").click();
      await page.getByRole("button", { name: "Show the payload" }).click();
      await page.getByLabel("tool_input: changes").waitFor();
      assert.deepEqual(await serious(page), [], "a decision");
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByText("Sign in with a link").waitFor();
      assert.deepEqual(await serious(page), [], "signed out");
      await close(window);
    });
  }
}

test("the keyboard is enough", async () => {
  const window = await open();
  const { page } = window;
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), "Skip to the content");
  for (let presses = 0; presses < 3; presses++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "What if" }).or(page.getByRole("heading", { level: 1, name: "Why" })).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "main", "a screen reader is where the page has changed");
  await close(window);
});

test("signed out: the cookie alone, or the token alone, opens nothing", async () => {
  const window = await open();
  const { page } = window;
  const statuses = await page.evaluate(async () => {
    const token = localStorage.getItem("hookyard-page-token");
    const ask = async (headers, credentials) => (await fetch("/v1/status", { headers, credentials })).status;
    return [
      await ask({ "x-hookyard-page": token }, "same-origin"),
      await ask({}, "same-origin"),
      await ask({ "x-hookyard-page": token }, "omit"),
    ];
  });
  assert.deepEqual(statuses, [200, 403, 401]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("Sign in with a link").waitFor();
  assert.equal(await page.evaluate(() => localStorage.length), 0);
  window.wrong.splice(0); // The browser tells of the 401 and the 403.
  await close(window);
});

test("10,000 runs are listed by pages, and found", async () => {
  const numbers = Array.from({ length: 10_000 }, (_, number) => number);
  const send = async () => {
    for (let number = numbers.pop(); number !== undefined; number = numbers.pop()) {
      await daemon.event("Shell", { command: "push --force" }, { run_id: `many-${number}`, session_id: `s-${number}` });
    }
  };
  await Promise.all(Array.from({ length: 32 }, send));
  const window = await open();
  const { page } = window;
  await page.getByRole("button", { name: "List up to 10,000" }).click();
  await page.getByRole("navigation", { name: "Pages of runs" }).getByText(/of (9,\d{3}|10,000)/).waitFor();
  const began = Date.now();
  await page.getByLabel("Filter").fill("many-4242");
  await row(page, "runs", "many-4242").waitFor();
  assert.ok(Date.now() - began < 3000, "a filter answers at once");
  assert.ok((await page.getByRole("row").count()) < 400, "rows beyond a page are not drawn");
  await close(window);
});

test("a fast daemon keeps the page calm", async () => {
  const stop = daemon.load([["Shell", { command: "git push --force" }]], 32);
  const window = await open();
  const { page } = window;
  await row(page, "hooks that ran", "no-force-push").waitFor();
  await sleep(3000);
  const seen = await page.evaluate(async () => {
    const seen = { long: 0, drawn: 0 };
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => (seen.long += entry.duration))).observe({ type: "longtask" });
    new MutationObserver(() => seen.drawn++).observe(document.querySelector(".tiles"), { subtree: true, characterData: true, childList: true });
    await new Promise((resolve) => setTimeout(resolve, 6000));
    return seen;
  });
  const rate = await page.locator(".tiles dd").first().textContent();
  await stop();
  console.log(`at ${rate}: ${seen.drawn} drawings in 6 s, ${Math.round(seen.long)} ms of long tasks`);
  assert.ok(seen.drawn >= 2 && seen.drawn <= 12, `${seen.drawn} drawings in 6 s`);
  assert.ok(seen.long < 3000, `${seen.long} ms of long tasks in 6 s`);
  await close(window);
});

test("a daemon that is gone is told, and the page asks for another link once it is back", async () => {
  const other = await new Daemon().start();
  const context = await browser.newContext({ viewport: DESKTOP });
  const page = await context.newPage();
  await page.goto(other.link());
  await page.getByRole("heading", { level: 1, name: "Now" }).waitFor();
  await page.getByText("No hook ran since somebody looks").waitFor();
  await other.stop();
  await page.getByText("What you see may be old").waitFor({ timeout: LONGEST });
  await context.close();
});

test("a daemon that hangs is told, though its connections stay, and that it is back", async () => {
  const other = await new Daemon().start();
  const context = await browser.newContext({ viewport: DESKTOP });
  const page = await context.newPage();
  await page.goto(other.link());
  await page.getByText("No hook ran since somebody looks").waitFor();
  const old = page.getByText("What you see may be old").first();
  other.process.kill("SIGSTOP");
  try {
    await old.waitFor({ timeout: LONGEST });
  } finally {
    other.process.kill("SIGCONT");
  }
  await old.waitFor({ state: "hidden", timeout: LONGEST });
  await context.close();
  await other.stop();
});
