/**
 * An agent of LangChain, with a model that only repeats its script. hookyard stops `rm -rf /`.
 *
 *     HOOKYARD_LISTEN_SOCKET=… node langchain.js
 */

import { Command, MemorySaver } from "@langchain/langgraph";
import { AIMessage, createAgent, fakeModel, tool, ToolMessage } from "langchain";
import { randomUUID } from "node:crypto";
import { z } from "zod";

import { haltIn, hookyard } from "hookyard-client/adapters/langchain";
import { showExample } from "./show.js";

/** Lets the model call `bash` with the commands of each turn. Returns which ran, what the model was told and asked, and the end. */
export async function play(yard, turns, { prompt = "go", approve, runTool = (command) => `ran ${command}`, ...rest } = {}) {
  const place = rest.place ?? { run: randomUUID(), cwd: process.cwd() };
  const ran = [];
  const bash = tool(({ command }) => (ran.push(command), runTool(command)), {
    name: "bash",
    description: "Runs a command.",
    schema: z.object({ command: z.string() }),
  });
  const call = (turn) => (command, number) => ({ name: "bash", args: { command }, id: `call-${turn}-${number}` });
  const model = fakeModel();
  turns.forEach((commands, turn) => model.respondWithTools(commands.map(call(turn))));
  model.respond(new AIMessage("done"));
  // A person is asked by an interrupt, for which the graph needs a checkpointer.
  const agent = createAgent({ model, tools: [bash], middleware: [hookyard(yard, place)], checkpointer: new MemorySaver() });
  const config = { configurable: { thread_id: "thread-1" } };
  let ended;
  try {
    let state = await agent.invoke({ messages: [{ role: "user", content: prompt }] }, config);
    while (state.__interrupt__?.length && approve !== undefined) {
      const type = approve ? "approve" : "reject";
      const answers = state.__interrupt__.map(({ id, value }) => [id, { type, tool_call_id: value.tool_call_id }]);
      state = await agent.invoke(new Command({ resume: Object.fromEntries(answers) }), config);
    }
    ended = state.__interrupt__?.length ? "waits" : state.messages.at(-1).content;
  } catch (error) {
    const halt = haltIn(error);
    if (!halt) throw error;
    ended = `halted: ${halt.message}`;
  }
  const told = (model.calls.at(-1)?.messages ?? []).filter((message) => ToolMessage.isInstance(message)).map(({ content }) => content);
  return { ran, told, ended, asked: JSON.stringify(model.calls[0]?.messages ?? null) };
}

await showExample(import.meta, play);
