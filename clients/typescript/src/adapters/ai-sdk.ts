/** Tools and models for the AI SDK that ask hookyard: `const guard = hookyard(yard, { run: "run-1" })`. */

import type { LanguageModelMiddleware, Tool, ToolSet } from "ai";

import type { Events, Place } from "../events.js";
import { check, isApproved, judgedSchema, last } from "./ai-sdk-tools.js";
import { Halted, haltIn, isPatched, refusal } from "./shared.js";

export { Refused } from "./ai-sdk-tools.js";
export { haltIn, Halted } from "./shared.js";

/** For one run: tools that ask before they run and about their output, and a middleware for its model that asks before each call. */
export function hookyard(yard: Events, place: Place) {
  // The SDK tells the model what a tool throws, and goes on. The next call of the model ends the run.
  let halted: Halted | undefined;
  const keepHalt = <T>(work: Promise<T>) => work.catch((error): never => { throw (halted ??= haltIn(error)) ?? error; });
  // That of the last call of the model: the SDK hands on none where it asks about an approval, or reads an input.
  let stop: AbortSignal | undefined;
  const guarded = (name: string, { execute, needsApproval, inputSchema, ...tool }: Tool<any, any>) => {
    const ask = (input: any, id?: string, signal = stop) => yard.beforeToolDispatch({ ...place, tool: { name, input, id } }, { signal });
    const judge = async (given: unknown) => {
      const outcome = await ask(given);
      check(outcome);
      return outcome.payload;
    };
    // It runs elsewhere, as soon as its input is valid.
    if (!execute) return [name, { ...tool, needsApproval, inputSchema: judgedSchema(inputSchema, (given) => keepHalt(judge(given))) }];
    const run: typeof execute = async (given, options) => {
      const { toolCallId: id, messages, abortSignal: signal } = options;
      const outcome = await ask(given, id, signal);
      check(outcome, isApproved(messages, id));
      const input = outcome.payload;
      const output = await last(execute(input, options));
      const after = await yard.afterToolDispatch({ ...place, tool: { name, input, id }, output }, { signal });
      check(after);
      return isPatched(after) ? after.payload : output;
    };
    const needs: typeof needsApproval = async (input, options) =>
      (typeof needsApproval === "function" ? await needsApproval(input, options) : needsApproval) ||
      (await ask(input, options.toolCallId)).verdict === "ask";
    return [name, { ...tool, inputSchema, execute: (...given: Parameters<typeof execute>) => keepHalt(Promise.resolve(run(...given))), needsApproval: needs }];
  };
  const tools = <T extends ToolSet>(given: T): T => Object.fromEntries(Object.entries(given).map((entry) => guarded(...entry)));
  const middleware: LanguageModelMiddleware = {
    specificationVersion: "v3",
    async transformParams({ params, model }) {
      if (halted) throw halted;
      const { prompt, abortSignal: signal } = params;
      const outcome = await yard.beforeModelCall({ ...place, model: model.modelId, request: { prompt } }, { signal: (stop = signal) });
      const refused = refusal(outcome);
      if (refused !== undefined) throw new Halted(refused);
      return { ...params, prompt: outcome.payload.prompt };
    },
  };
  return { tools, middleware };
}
