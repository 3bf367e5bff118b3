/** The adapter for the AI SDK, beyond its example and the cases that all adapters share. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, streamText, stepCountIs, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { z } from "zod";

import { haltIn, hookyard } from "../dist/adapters/ai-sdk.js";
import { fake, Problem } from "../dist/index.js";

const away = () => {
  throw new Problem("down", "nobody is there", "start it", "safe");
};
const NONE = /hookyard gave no verdict: nobody is there/;
const TOKEN = "ghp_" + "a1B2".repeat(9);
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

test("streams are guarded alike, and nobody sees a part of an output before hooks do", async () => {
  const call = { type: "tool-call", toolName: "bash", toolCallId: "1", input: '{"command":"ls"}' };
  const chunks = [{ type: "stream-start", warnings: [] }, call, { type: "finish", finishReason: { unified: "tool-calls" }, usage }];
  const model = new MockLanguageModelV3({ doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) });
  async function* execute() {
    yield "part";
    yield `whole ${TOKEN}`;
  }
  const outputs = [];
  const yard = fake({
    after_tool_dispatch: ({ tool_output }) => (outputs.push(tool_output), { verdict: "halt", reason: "enough" }),
  });
  const guard = hookyard(yard, { run: "r" });
  const errors = [];
  const { fullStream } = streamText({
    model: wrapLanguageModel({ model, middleware: guard.middleware }),
    tools: guard.tools({ bash: tool({ inputSchema: z.object({ command: z.string() }), execute }) }),
    prompt: "go",
    stopWhen: stepCountIs(5),
    onError: ({ error }) => errors.push(error),
  });
  const seen = [];
  for await (const part of fullStream) seen.push(part);
  assert.deepEqual(outputs, [`whole ${TOKEN}`]);
  assert(!JSON.stringify(seen).includes(TOKEN) && !seen.some(({ type }) => type === "tool-result"));
  assert.deepEqual([model.doStreamCalls.length, haltIn(errors[0])?.message], [1, "enough"]);
});

test("a call that asks only when it is about to run does not run", async () => {
  let ran = false;
  const verdicts = ["proceed", "ask"];
  const guard = hookyard(fake({ before_tool_dispatch: () => ({ verdict: verdicts.shift(), reason: "changed" }) }), { run: "r" });
  const { bash } = guard.tools({ bash: tool({ inputSchema: z.object({}), execute: () => (ran = true) }) });
  const options = { toolCallId: "1", messages: [{ role: "user", content: "go" }] };
  assert.equal(await bash.needsApproval({}, options), false);
  await assert.rejects(bash.execute({}, options), { name: "Refused", message: "changed" });
  assert.equal(ran, false);
});

/** One call of the tool `bash`, and what the model was told of it. */
async function playTool(yard, bash, isStream) {
  const asked = [];
  const content = (prompt) => (asked.push(prompt), asked.length > 1 ? [] : [{ type: "tool-call", toolName: "bash", toolCallId: "1", input: '{"command":"ls"}' }]);
  const ending = { finishReason: { unified: "tool-calls" }, usage };
  const model = new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => ({ content: content(prompt), ...ending, warnings: [] }),
    doStream: async ({ prompt }) => ({ stream: simulateReadableStream({ chunks: [...content(prompt), { type: "finish", ...ending }] }) }),
  });
  const guard = hookyard(yard, { run: "r" });
  const agent = { model: wrapLanguageModel({ model, middleware: guard.middleware }), tools: guard.tools({ bash }), stopWhen: stepCountIs(5), prompt: "go" };
  const parts = [];
  let error;
  if (isStream) for await (const part of streamText({ ...agent, onError: (said) => (error = said.error) }).fullStream) parts.push(part);
  else await generateText(agent).then(({ steps }) => parts.push(...steps.flatMap((step) => step.content)), (thrown) => (error = thrown));
  const went = parts.filter(({ type, invalid }) => type === "tool-call" && !invalid).map(({ input }) => input);
  const waits = parts.some(({ type }) => type === "tool-approval-request");
  const told = asked.slice(1).flatMap((prompt) => prompt).flatMap((message) => message.content).filter(({ type }) => type === "tool-result");
  return { went, waits, told: told.map(({ output }) => output.value).join(), halted: haltIn(error)?.message };
}

for (const isStream of [false, true]) {
  test(`a call of a tool that runs elsewhere goes out only if hooks let it, ${isStream ? "streamed" : "whole"}`, async () => {
    const inputSchema = z.object({ command: z.string() });
    for (const [answer, expected, told = /^$/, halted] of [
      [{}, [{ command: "ls" }]],
      [{ patched: { tool_input: { command: "ls -l" } } }, [{ command: "ls -l" }]],
      [{ verdict: "block", reason: "not this" }, [], /not this/],
      // Where it is seen, it may run before a person has agreed.
      [{ verdict: "ask", reason: "who knows" }, [], /who knows/],
      [{ verdict: "halt", reason: "enough" }, [], /^$/, "enough"],
      [away, [], NONE],
    ]) {
      const yard = fake({ before_tool_dispatch: answer });
      const played = await playTool(yard, tool({ inputSchema }), isStream);
      assert.match(played.told, told);
      assert.deepEqual([played.went, played.waits, played.halted], [expected, false, halted]);
      assert.equal(yard.events.filter(({ event }) => event === "before_tool_dispatch").length, 1);
    }
    const invalid = await playTool(fake(), tool({ inputSchema: z.object({ command: z.number() }) }), isStream);
    assert.deepEqual(invalid.went, []);
  });

  test(`a refusal is no output of the tool, ${isStream ? "streamed" : "whole"}`, async () => {
    const toModelOutput = ({ output }) => ({ type: "text", value: `${output.lines}` });
    const bash = tool({ inputSchema: z.object({ command: z.string() }), execute: () => ({ lines: 1 }), toModelOutput });
    for (const [kind, told] of [["before_tool_dispatch", "not this"], ["after_tool_dispatch", "not this"], ["notification", "1"]]) {
      assert.equal((await playTool(fake({ [kind]: { verdict: "block", reason: "not this" } }), bash, isStream)).told, told);
    }
  });
}

test("what a tool throws itself ends no run", async () => {
  for (const thrown of ["no file", null, new Error("no file")]) {
    const execute = () => {
      throw thrown;
    };
    const { told, halted } = await playTool(fake(), tool({ inputSchema: z.object({ command: z.string() }), execute }), false);
    assert.deepEqual([told, halted], [thrown ? "no file" : "unknown error", undefined]);
  }
});

test("what is cancelled while hooks are asked does not run", async () => {
  const yard = fake();
  const { beforeToolDispatch } = yard;
  const stop = new AbortController();
  yard.beforeToolDispatch = (event, options) => (stop.abort(), beforeToolDispatch.call(yard, event, options));
  let ran = false;
  const guard = hookyard(yard, { run: "r" });
  const { bash } = guard.tools({ bash: tool({ inputSchema: z.object({}), execute: () => (ran = true) }) });
  const options = { toolCallId: "1", messages: [], abortSignal: stop.signal };
  await assert.rejects(bash.execute({}, options), { name: "AbortError" });
  await guard.middleware.transformParams({ params: { prompt: [], abortSignal: stop.signal }, model: {} }).catch(() => {});
  await assert.rejects(bash.needsApproval({}, options), { name: "AbortError" });
  assert.equal(ran, false);
});

test("an approval of its own stays with a tool", async () => {
  const needsApproval = ({ command }) => command === "own";
  const guard = hookyard(fake(), { run: "r" });
  const { bash } = guard.tools({ bash: tool({ inputSchema: z.object({ command: z.string() }), needsApproval, execute: () => "" }) });
  const needs = (command) => bash.needsApproval({ command }, { toolCallId: "1", messages: [] });
  assert.deepEqual([await needs("own"), await needs("ls")], [true, false]);
});
