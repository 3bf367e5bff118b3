/** Hooks for the Claude Agent SDK that ask hookyard: `query({ prompt, options: { hooks: claudeHooks(yard) } })`. */
import { Outputs } from "./claude-outputs.js";
import { told } from "./shared.js";
/** Asks before and after each tool, and about each prompt. The run of an event is the session. */
export function claudeHooks(yard) {
    const outputs = new Outputs();
    const after = (ask) => matcher(async (input, options) => {
        outputs.hold(input);
        const outcome = await ask(input, options);
        // What is halted ends after the other calls of the turn, where the SDK says why.
        return answer(input, { ...outcome, verdict: "block" }, { updatedToolOutput: outputs.judged(input, outcome) });
    });
    return {
        PreToolUse: matcher(async (input, options) => {
            const outcome = await yard.beforeToolDispatch(toolEvent(input), options);
            const decision = { proceed: undefined, allow: "allow", ask: "ask", block: "deny", halt: "deny" }[outcome.verdict];
            const reason = decision === "deny" ? told(outcome) : outcome.reason;
            const updatedInput = outcome.patched?.tool_input;
            return answer(input, outcome, { permissionDecision: decision, permissionDecisionReason: reason, updatedInput });
        }),
        PostToolUse: after((input, options) => yard.afterToolDispatch({ ...toolEvent(input), output: input.tool_response }, options)),
        PostToolUseFailure: after((input, options) => yard.toolFailed({ ...toolEvent(input), error: input.error }, options)),
        // Before the model gets the outputs of a turn.
        PostToolBatch: matcher(async (input) => ended(outputs.over(input))),
        UserPromptSubmit: matcher(async (input, options) => {
            const outcome = await yard.promptSubmitted({ ...place(input), prompt: input.prompt }, options);
            // The SDK has no way to change a prompt.
            const changed = outcome.patched?.prompt === undefined ? undefined : "a hook changed the prompt";
            return { ...answer(input, outcome, {}), ...blocked(outcome.proceeds ? (outputs.over(input) ?? changed) : told(outcome)) };
        }),
        PreCompact: matcher(async (input) => blocked(outputs.over(input))),
    };
}
function matcher(ask) {
    const hook = (input, _, options) => ask(input, { signal: options.signal });
    // In seconds. The SDK goes on after it, so it is longer than any event takes.
    return [{ hooks: [hook], timeout: 3600, onFailure: "block" }];
}
/** What the SDK is told: an outcome, and what is special to the event. */
function answer({ hook_event_name: hookEventName }, { verdict, proceeds, reason, notes }, special) {
    const texts = (isForModel) => notes.filter(({ kind }) => (kind === "additional_context") === isForModel).map(({ text }) => text).join("\n") || undefined;
    const end = ended(verdict === "halt" ? (reason ?? "a hook ended the run") : undefined);
    const systemMessage = [end.systemMessage, texts(false)].filter(Boolean).join("\n") || undefined;
    // A refusal has the notes in its reason.
    const additionalContext = proceeds || verdict === "ask" ? texts(true) : undefined;
    return { ...end, systemMessage, hookSpecificOutput: { hookEventName, ...special, additionalContext } };
}
const ended = (reason) => (reason === undefined ? {} : { continue: false, stopReason: reason, systemMessage: reason });
const blocked = (reason) => (reason === undefined ? {} : { decision: "block", reason });
const place = (input) => ({ run: input.session_id, cwd: input.cwd });
const toolEvent = (input) => ({ ...place(input), tool: { name: input.tool_name, input: input.tool_input, id: input.tool_use_id } });
