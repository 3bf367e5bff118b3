/**
 * An agent of the OpenAI Agents SDK, with a model that only repeats its script. hookyard stops `rm -rf /`.
 *
 *     HOOKYARD_LISTEN_SOCKET=… node openai-agents.js
 */

import { Agent, Runner, tool } from "@openai/agents";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { randomUUID } from "node:crypto";
import { z } from "zod";

import { guarded, haltIn, modelFilter } from "hookyard-client/adapters/openai-agents";
import { showExample } from "./show.js";

/** Lets the model call `bash` with the commands of each turn. Returns which ran, what the model was told and asked, and the end. */
export async function play(yard, turns, { prompt = "go", approve, runTool = (command) => `ran ${command}`, ...rest } = {}) {
  const place = rest.place ?? { run: randomUUID(), cwd: process.cwd() };
  const ran = [];
  const bash = tool({
    name: "bash",
    description: "Runs a command.",
    parameters: z.object({ command: z.string() }),
    execute: ({ command }) => (ran.push(command), runTool(command)),
  });
  const call = (turn) => (command, number) => functionCall("bash", { command }, { callId: `call-${turn}-${number}` });
  const model = new ScriptedModel([...turns.map((commands, turn) => commands.map(call(turn))), [assistantMessage("done")]]);
  const agent = new Agent({ name: "builder", model, tools: guarded(yard, [bash], place) });
  const runner = new Runner({ tracingDisabled: true, callModelInputFilter: modelFilter(yard, place) });
  let ended;
  try {
    let result = await runner.run(agent, prompt);
    while (result.interruptions.length > 0 && approve !== undefined) {
      for (const item of result.interruptions) approve ? result.state.approve(item) : result.state.reject(item);
      result = await runner.run(agent, result.state);
    }
    ended = result.interruptions.length > 0 ? "waits" : result.finalOutput;
  } catch (error) {
    const halt = haltIn(error);
    if (!halt) throw error;
    ended = `halted: ${halt.message}`;
  }
  const input = model.calls.at(-1)?.request.input ?? [];
  const told = input.filter(({ type }) => type === "function_call_result").map(({ output }) => output.text ?? output);
  return { ran, told, ended, asked: JSON.stringify(model.calls[0]?.request.input ?? null) };
}

await showExample(import.meta, play);
