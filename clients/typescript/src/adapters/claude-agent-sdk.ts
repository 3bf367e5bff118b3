/** Hooks for the Claude Agent SDK that ask hookyard: `query({ prompt, options: { hooks: claudeHooks(yard) } })`. */

import type { Events } from "../events.js";
import type { Outcome } from "../outcome.js";

/** In seconds. The SDK goes on after it, so it is longer than any event takes. */
const TIMEOUT = 3600;

/** What the SDK says, as far as it is used here. */
type Input = { session_id: string; cwd: string };
type ToolInput = Input & { tool_name: string; tool_input: unknown; tool_use_id: string; tool_response?: unknown };
type PromptInput = Input & { prompt: string };
type Answer = Record<string, unknown>;

/** Asks before and after each tool, and about each prompt. The run of an event is the session. */
export function claudeHooks(yard: Events) {
  return {
    PreToolUse: matcher("PreToolUse", async (input: ToolInput, signal) => {
      const outcome = await yard.beforeToolDispatch({ ...place(input), tool: toolOf(input) }, { signal });
      const decision = ({ proceed: undefined, allow: "allow", ask: "ask", block: "deny", halt: "deny" } as const)[outcome.verdict];
      const updatedInput = outcome.patched?.tool_input;
      return [outcome, { permissionDecision: decision, permissionDecisionReason: outcome.reason, updatedInput }, {}];
    }),
    PostToolUse: matcher("PostToolUse", async (input: ToolInput, signal) => {
      const outcome = await yard.afterToolDispatch({ ...place(input), tool: toolOf(input), output: input.tool_response }, { signal });
      return [outcome, { updatedToolOutput: outcome.patched?.tool_output }, blocked(outcome)];
    }),
    UserPromptSubmit: matcher("UserPromptSubmit", async (input: PromptInput, signal) => {
      const outcome = await yard.promptSubmitted({ ...place(input), prompt: input.prompt }, { signal });
      // The SDK has no way to change a prompt.
      const changed = outcome.patched?.prompt === undefined ? {} : { decision: "block", reason: "a hook changed the prompt" };
      return [outcome, {}, { ...changed, ...blocked(outcome) }];
    }),
  };
}

/** A hook of the SDK: an outcome, what is special to the event, and what is not. */
function matcher<I>(hookEventName: string, ask: (input: I, signal: AbortSignal) => Promise<[Outcome, Answer, Answer]>) {
  const hook = async (input: any, _: string | undefined, { signal }: { signal: AbortSignal }): Promise<any> => {
    const [{ verdict, reason, notes }, special, common] = await ask(input, signal);
    const texts = (isForModel: boolean) =>
      notes.filter(({ kind }) => (kind === "additional_context") === isForModel).map(({ text }) => text).join("\n") || undefined;
    const end = verdict === "halt" ? { continue: false, stopReason: reason } : {};
    const hookSpecificOutput = { hookEventName, ...special, additionalContext: texts(true) };
    return { ...common, ...end, systemMessage: texts(false), hookSpecificOutput };
  };
  return [{ hooks: [hook], timeout: TIMEOUT, onFailure: "block" as const }];
}

const place = (input: Input) => ({ run: input.session_id, cwd: input.cwd });

const toolOf = (input: ToolInput) => ({ name: input.tool_name, input: input.tool_input, id: input.tool_use_id });

const blocked = ({ proceeds, reason }: Outcome): Answer => (proceeds ? {} : { decision: "block", reason });
