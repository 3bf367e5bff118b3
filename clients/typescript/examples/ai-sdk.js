/**
 * An agent of the AI SDK, with a model that only repeats its script. hookyard stops `rm -rf /`.
 *
 *     HOOKYARD_LISTEN_SOCKET=… node ai-sdk.js
 */

import { generateText, stepCountIs, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { randomUUID } from "node:crypto";
import { z } from "zod";

import { haltIn, hookyard } from "hookyard-client/adapters/ai-sdk";
import { showExample } from "./show.js";

const USAGE = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

/** Lets the model call `bash` with the commands of each turn. Returns which ran, what the model was told and asked, and the end. */
export async function play(yard, turns, { prompt = "go", approve, runTool = (command) => `ran ${command}`, ...rest } = {}) {
  const place = rest.place ?? { run: randomUUID(), cwd: process.cwd() };
  const ran = [];
  const bash = tool({
    description: "Runs a command.",
    inputSchema: z.object({ command: z.string() }),
    execute: ({ command }) => (ran.push(command), runTool(command)),
  });
  const call = (turn) => (command, number) =>
    ({ type: "tool-call", toolName: "bash", toolCallId: `call-${turn}-${number}`, input: JSON.stringify({ command }) });
  const script = [...turns.map((commands, turn) => commands.map(call(turn))), [{ type: "text", text: "done" }]];
  const finish = (content) => ({ unified: content[0].type === "text" ? "stop" : "tool-calls" });
  const answers = script.map((content) => ({ content, finishReason: finish(content), usage: USAGE, warnings: [] }));
  const asked = [];
  const model = new MockLanguageModelV3({ doGenerate: async ({ prompt }) => (asked.push(prompt), answers.shift()) });
  const guard = hookyard(yard, place);
  const agent = {
    model: wrapLanguageModel({ model, middleware: guard.middleware }),
    tools: guard.tools({ bash }),
    stopWhen: stepCountIs(9),
  };
  let ended;
  try {
    let messages = [{ role: "user", content: prompt }];
    for (;;) {
      const result = await generateText({ ...agent, messages });
      const waits = result.content.filter(({ type }) => type === "tool-approval-request");
      ended = waits.length > 0 ? "waits" : result.text;
      if (waits.length === 0 || approve === undefined) break;
      const answer = waits.map(({ approvalId }) => ({ type: "tool-approval-response", approvalId, approved: approve }));
      messages = [...messages, ...result.response.messages, { role: "tool", content: answer }];
    }
  } catch (error) {
    const halt = haltIn(error);
    if (!halt) throw error;
    ended = `halted: ${halt.message}`;
  }
  const results = (asked.at(-1) ?? []).flatMap(({ content }) => content).filter(({ type }) => type === "tool-result");
  const told = results.map(({ output: { value, reason } }) => value ?? reason ?? "not approved");
  return { ran, told, ended, asked: JSON.stringify(asked[0] ?? null) };
}

await showExample(import.meta, play);
