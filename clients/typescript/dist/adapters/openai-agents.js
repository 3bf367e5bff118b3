/** Tools for the OpenAI Agents SDK that ask hookyard: `new Agent({ tools: guarded(yard, [bash], { run: "run-1" }) })`. */
import { Halted, isPatched, placeOf, refusal } from "./shared.js";
export { haltIn, Halted } from "./shared.js";
/** The tools, each of which asks before it runs, and about its output. `place` may be a function of the context of the run. */
export function guarded(yard, tools, place) {
    const other = tools.find(({ type }) => type !== "function");
    if (other)
        throw new TypeError(`hookyard can stand before function tools alone, not before ${other.type}`);
    return tools.map((tool) => guardedTool(yard, tool, place));
}
/** For `callModelInputFilter`: asks before each call of a model. The SDK can only end the run if that is blocked. */
export function modelFilter(yard, place) {
    return async ({ modelData, agent, context }) => {
        const outcome = await yard.beforeModelCall({ ...placeOf(place, context), model: String(agent.model), request: modelData });
        const refused = refusal(outcome);
        if (refused !== undefined)
            throw new Halted(refused);
        return outcome.payload;
    };
}
function guardedTool(yard, tool, place) {
    const { name } = tool;
    const event = (run, input, id) => ({ ...placeOf(place, run.context), tool: { name, input, id } });
    const needsApproval = async (run, input, id) => (await tool.needsApproval(run, input, id)) || (await yard.beforeToolDispatch(event(run, input, id))).verdict === "ask";
    const invoke = async (run, text, details) => {
        const callId = details?.toolCall?.callId;
        const options = { signal: details?.signal };
        const outcome = await yard.beforeToolDispatch(event(run, parsed(text), callId), options);
        const refused = refusal(outcome, callId !== undefined && run.isToolApproved({ toolName: name, callId }) === true);
        if (refused !== undefined)
            return refused;
        const output = await tool.invoke(run, isPatched(outcome) ? JSON.stringify(outcome.payload) : text, details);
        const after = await yard.afterToolDispatch({ ...event(run, outcome.payload, callId), output }, options);
        return refusal(after) ?? (isPatched(after) ? after.payload : output);
    };
    return { ...tool, needsApproval, invoke };
}
function parsed(text) {
    try {
        return JSON.parse(text);
    }
    catch {
        // The tool says to the model what is wrong with it.
        return text;
    }
}
