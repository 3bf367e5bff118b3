/** Tools and models for the AI SDK that ask hookyard: `const guard = hookyard(yard, { run: "run-1" })`. */
import { Halted, haltIn, isPatched, refusal } from "./shared.js";
export { haltIn, Halted } from "./shared.js";
/** For one run: tools that ask before they run and about their output, and a middleware for its model that asks before each call. */
export function hookyard(yard, place) {
    // The SDK tells the model what a tool throws, and goes on. The next call of the model ends the run.
    let halted;
    const guarded = (name, { execute, needsApproval, ...tool }) => {
        const ask = (input, id) => yard.beforeToolDispatch({ ...place, tool: { name, input, id } });
        const run = async (given, options) => {
            const { toolCallId: id, messages, abortSignal: signal } = options;
            const outcome = await ask(given, id);
            const refused = refusal(outcome, isApproved(messages, id));
            if (refused !== undefined)
                return refused;
            const input = outcome.payload;
            const output = await last(execute?.(input, options));
            const after = await yard.afterToolDispatch({ ...place, tool: { name, input, id }, output }, { signal });
            return refusal(after) ?? (isPatched(after) ? after.payload : output);
        };
        const halting = (...given) => Promise.resolve(run(...given)).catch((error) => Promise.reject((halted ??= haltIn(error)) ?? error));
        const needs = async (input, options) => (typeof needsApproval === "function" ? await needsApproval(input, options) : needsApproval) ||
            (await ask(input, options.toolCallId)).verdict === "ask";
        return [name, { ...tool, execute: execute && halting, needsApproval: needs }];
    };
    const tools = (given) => Object.fromEntries(Object.entries(given).map((entry) => guarded(...entry)));
    const middleware = {
        specificationVersion: "v3",
        async transformParams({ params, model }) {
            if (halted)
                throw halted;
            const outcome = await yard.beforeModelCall({ ...place, model: model.modelId, request: { prompt: params.prompt } });
            const refused = refusal(outcome);
            if (refused !== undefined)
                throw new Halted(refused);
            return { ...params, prompt: outcome.payload.prompt };
        },
    };
    return { tools, middleware };
}
/** What a tool returns, or the last of what it yields: nobody sees a part of it before hooks do. */
async function last(output) {
    let value = await output;
    if (typeof value?.[Symbol.asyncIterator] === "function")
        for await (value of value)
            ;
    return value;
}
function isApproved(messages, toolCallId) {
    const parts = messages.flatMap(({ content }) => content);
    const ids = parts.filter((part) => part.type === "tool-approval-request" && part.toolCallId === toolCallId).map((part) => part.approvalId);
    return parts.some(({ type, approvalId, approved }) => type === "tool-approval-response" && approved && ids.includes(approvalId));
}
