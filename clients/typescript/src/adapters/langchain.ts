/** A middleware for agents of LangChain that asks hookyard: `createAgent({ middleware: [hookyard(yard, { run: "run-1" })] })`. */

import { AIMessage, createMiddleware, ToolMessage, type ToolCallRequest } from "langchain";
import { mapChatMessagesToStoredMessages, mapStoredMessagesToChatMessages, SystemMessage } from "@langchain/core/messages";

import type { Events } from "../events.js";
import { isPatched, placeOf, refusal, type PlaceOf } from "./shared.js";

export { haltIn, Halted } from "./shared.js";

/** Asks before each call of a tool, about its output, and before each call of a model. `place` may be a function of the runtime. */
export function hookyard(yard: Events, place: PlaceOf<ToolCallRequest["runtime"]>) {
  return createMiddleware({
    name: "hookyard",
    async wrapToolCall(request, handler) {
      const { toolCall: { name, args, id }, runtime } = request;
      const where = placeOf(place, runtime);
      const outcome = await yard.beforeToolDispatch({ ...where, tool: { name, input: args, id } }, { signal: runtime.signal });
      const tell = (content: string) => new ToolMessage({ content, name, tool_call_id: id!, status: "error" });
      const approval = { type: "tool_approval", tool_call_id: id, name, args: outcome.payload, description: outcome.reason };
      // Ends this step of the graph at first. It is taken again with the answer of the person, and asks hookyard again.
      const answer: any = outcome.verdict === "ask" ? runtime.interrupt?.(approval) : undefined;
      const refused = refusal(outcome, answer?.type === "approve" && answer.tool_call_id === id);
      if (refused !== undefined) return tell(refused);
      const result = await handler({ ...request, toolCall: { ...request.toolCall, args: outcome.payload } });
      // Else it is a command to the graph, which stays as it is.
      const message = ToolMessage.isInstance(result) ? result : undefined;
      const output = message ? message.content : JSON.parse(JSON.stringify((result as { update?: unknown }).update ?? null));
      const tool = { name, input: outcome.payload, id };
      const after = await yard.afterToolDispatch({ ...where, tool, output }, { signal: runtime.signal });
      const unfit = isPatched(after) && !message ? "a hook changed what cannot be changed" : undefined;
      const withheld = refusal(after) ?? unfit;
      if (withheld !== undefined) return tell(withheld);
      if (message && isPatched(after)) message.content = content(after.payload);
      return result;
    },
    async wrapModelCall(request, handler) {
      const { systemPrompt: system, messages, model, runtime } = request;
      const given = { system, messages: mapChatMessagesToStoredMessages(messages) };
      const event = { ...placeOf(place, runtime), model: typeof model === "string" ? model : model.getName(), request: given };
      const outcome = await yard.beforeModelCall(event, { signal: runtime.signal });
      const refused = refusal(outcome);
      if (refused !== undefined) return new AIMessage(refused);
      if (!isPatched(outcome)) return handler(request);
      const changed = mapStoredMessagesToChatMessages(outcome.payload.messages);
      return handler({ ...request, messages: changed, systemMessage: new SystemMessage(outcome.payload.system) });
    },
  });
}

/** An output as a message can have it: a text, blocks, or the JSON of anything else. */
function content(output: any): any {
  const isBlocks = Array.isArray(output) && output.every((part) => part?.type !== undefined);
  return typeof output === "string" || isBlocks ? output : JSON.stringify(output);
}
