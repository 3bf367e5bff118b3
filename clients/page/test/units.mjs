// What of the page is a function of its arguments.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

async function load(source) {
  const { outputFiles } = await build({ entryPoints: [source], bundle: true, format: "esm", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}

test("numbers have their units", async () => {
  const { ago, count, duration, longDuration, plural, rate } = await load("src/format.ts");
  const cases = [
    [duration(null), "–"],
    [duration(0), "0 µs"],
    [duration(0.0421), "42 µs"],
    [duration(3.21), "3.21 ms"],
    [duration(42.21), "42.2 ms"],
    [duration(999.9), "1,000 ms"],
    [duration(1500), "1.50 s"],
    [duration(7_260_000), "2 h 1 min"],
    [longDuration(119_000), "119 s"],
    [longDuration(200_000_000), "2 d 7 h"],
    [ago(10), "just now"],
    [rate(0), "0/s"],
    [rate(0.001), "<0.01/s"],
    [rate(4987.3), "4,987/s"],
    [count(10_000), "10,000"],
    [plural(1, "error"), "1 error"],
    [plural(2, "error"), "2 errors"],
  ];
  for (const [shown, expected] of cases) assert.equal(shown, expected);
});

test("characters that are not seen are shown by their numbers", async () => {
  const { visible } = await load("src/visible.ts");
  assert.equal(visible("rm \u202e\u0007x\u200b\ny\tz"), "rm \\u202e\\u0007x\\u200b\ny\tz");
  assert.equal(visible("r\u00adm\u3164\u{e0041}x"), "r\\u00adm\\u3164\\ue0041x");
  assert.equal(visible("Größe 🙂 日本"), "Größe 🙂 日本");
});

test("a text that is on one side only, or too long to compare, is shown whole", async () => {
  const { changes } = await load("src/diff.ts");
  const signs = (before, after) => changes(before, after).map((line) => line.sign + line.text);
  assert.deepEqual(signs(null, "a\nb\n"), ["+a", "+b"]);
  assert.deepEqual(signs("a", null), ["-a"]);
  assert.deepEqual(signs(null, ""), []);
  assert.deepEqual(signs("a", "a"), []);
  const [old, fresh] = ["x\n".repeat(2000), "y\n".repeat(2000)];
  assert.equal(signs(old, fresh).length, 4000);
});

test("a difference has what is on one side only", async () => {
  const { difference } = await load("src/diff.ts");
  const signs = (before, after) => difference(before, after).map((line) => line.sign + line.text);
  assert.deepEqual(signs("a\nb\nc", "a\nx\nc"), [" a", "-b", "+x", " c"]);
  assert.deepEqual(signs("a", "a"), []);
  assert.deepEqual(signs("", "a"), ["-", "+a"]);
  const long = Array.from({ length: 50 }, (_, number) => `line ${number}`);
  const changed = long.with(25, "changed");
  assert.deepEqual(signs(long.join("\n"), changed.join("\n")).length, 8, "three equal lines on each side");
  const longer = Array.from({ length: 5000 }, (_, number) => `line ${number}`);
  assert.deepEqual(signs(longer.join("\n"), longer.with(2500, "changed").join("\n")).length, 8, "what is equal at both ends is not compared");
  assert.equal(difference("x\n".repeat(2000), "y\n".repeat(2000)), undefined, "too long to compare");
});

test("what each hook changed is said as it is, whether it is kept or not, and whether the host gets it", async () => {
  const { changesByHook } = await load("src/diff.ts");
  const [before, after] = [2000, 2001].map((length) => Array.from({ length }, (_, number) => `${length}-${number}`));
  const kept = { sent: { tool_input: { a: 1 } }, changed: {}, by_hook: [{ tool_input: { a: 2 } }] };
  const long = { sent: { tool_input: before }, changed: {}, by_hook: [{ tool_input: after }] };
  const large = { sent: {}, changed: {}, by_hook: [{}] };
  const cases = [
    ["before_tool_dispatch", "proceed", kept, ["kept", "compared", "host gets it"]],
    ["before_tool_dispatch", "ask", kept, ["kept", "compared", "host gets it"]],
    ["before_tool_dispatch", "block", kept, ["kept", "compared", "stopped"]],
    ["before_tool_dispatch", "halt", kept, ["kept", "compared", "stopped"]],
    ["before_tool_dispatch", "proceed", long, ["kept", "too long", "host gets it"]],
    ["before_tool_dispatch", "proceed", large, ["not kept", "too long", "host gets it"]],
    ["before_tool_dispatch", "block", large, ["not kept", "too long", "stopped"]],
    ["after_tool_dispatch", "block", large, ["not kept", "too long", "host gets it"]],
  ];
  for (const [event, verdict, payload, expected] of cases) {
    const [change, ...others] = changesByHook({ event, verdict, reports: [{ hook: "h", patched: ["tool_input"] }] }, payload);
    const shown = [change.made === undefined ? "not kept" : "kept", change.lines ? "compared" : "too long", change.isStopped ? "stopped" : "host gets it"];
    assert.deepEqual([shown, others], [expected, []], `${event} ${verdict}`);
  }
  const { made } = changesByHook({ event: "before_tool_dispatch", verdict: "proceed", reports: [{ hook: "h", patched: ["tool_input"] }] }, long)[0];
  assert.ok(made.startsWith('[\n  "2001-0",'), "what is too long to compare is there to be shown");
});

test("numbers of events keep every digit, and texts stay as they are", async () => {
  const { parseExact, prettyExact } = await load("src/exact.ts");
  const json = '{"big":9007199254740993,"huge":1e400,"small":[1,-0.10,1E5,12],"text":"\\"9007199254740993\\" and 1e400","key 1e400":null}';
  const read = parseExact(json);
  assert.equal(prettyExact(read).replaceAll(/\n */g, "").replaceAll(": ", ":"), json);
  assert.deepEqual([read.small[0], read.small[3]], [1, 12]);
  assert.equal(prettyExact(undefined), "");
  const changed = parseExact('{"big":9007199254740992}');
  assert.notEqual(prettyExact(changed.big), prettyExact(read.big));
});
