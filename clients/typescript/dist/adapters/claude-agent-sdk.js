/** Hooks for the Claude Agent SDK that ask hookyard: `query({ prompt, options: { hooks: claudeHooks(yard) } })`. */
/** In seconds. The SDK goes on after it, so it is longer than any event takes. */
const TIMEOUT = 3600;
/** Asks before and after each tool, and about each prompt. The run of an event is the session. */
export function claudeHooks(yard) {
    return {
        PreToolUse: matcher("PreToolUse", async (input, signal) => {
            const outcome = await yard.beforeToolDispatch({ ...place(input), tool: toolOf(input) }, { signal });
            const decision = { proceed: undefined, allow: "allow", ask: "ask", block: "deny", halt: "deny" }[outcome.verdict];
            const updatedInput = outcome.patched?.tool_input;
            return [outcome, { permissionDecision: decision, permissionDecisionReason: outcome.reason, updatedInput }, {}];
        }),
        PostToolUse: matcher("PostToolUse", async (input, signal) => {
            const outcome = await yard.afterToolDispatch({ ...place(input), tool: toolOf(input), output: input.tool_response }, { signal });
            return [outcome, { updatedToolOutput: outcome.patched?.tool_output }, blocked(outcome)];
        }),
        UserPromptSubmit: matcher("UserPromptSubmit", async (input, signal) => {
            const outcome = await yard.promptSubmitted({ ...place(input), prompt: input.prompt }, { signal });
            // The SDK has no way to change a prompt.
            const changed = outcome.patched?.prompt === undefined ? {} : { decision: "block", reason: "a hook changed the prompt" };
            return [outcome, {}, { ...changed, ...blocked(outcome) }];
        }),
    };
}
/** A hook of the SDK: an outcome, what is special to the event, and what is not. */
function matcher(hookEventName, ask) {
    const hook = async (input, _, { signal }) => {
        const [{ verdict, reason, notes }, special, common] = await ask(input, signal);
        const texts = (isForModel) => notes.filter(({ kind }) => (kind === "additional_context") === isForModel).map(({ text }) => text).join("\n") || undefined;
        const end = verdict === "halt" ? { continue: false, stopReason: reason } : {};
        const hookSpecificOutput = { hookEventName, ...special, additionalContext: texts(true) };
        return { ...common, ...end, systemMessage: texts(false), hookSpecificOutput };
    };
    return [{ hooks: [hook], timeout: TIMEOUT, onFailure: "block" }];
}
const place = (input) => ({ run: input.session_id, cwd: input.cwd });
const toolOf = (input) => ({ name: input.tool_name, input: input.tool_input, id: input.tool_use_id });
const blocked = ({ proceeds, reason }) => (proceeds ? {} : { decision: "block", reason });
