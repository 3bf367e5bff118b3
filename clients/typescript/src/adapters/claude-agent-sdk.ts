/** Hooks for the Claude Agent SDK that ask hookyard: `query({ prompt, options: { hooks: claudeHooks(yard) } })`. */

import type { Events } from "../events.js";
import type { Outcome } from "../outcome.js";
import { Outputs, type Call } from "./claude-outputs.js";
import { told } from "./shared.js";

/** What the SDK says, as far as it is used here. */
type Input = Call & { hook_event_name: string; cwd: string; tool_name: string; tool_input: unknown; error?: string; prompt: string };
type Options = { signal: AbortSignal };
type Answer = Record<string, unknown>;

/** Asks before and after each tool, and about each prompt. The run of an event is the session. */
export function claudeHooks(yard: Events) {
  const outputs = new Outputs();
  const after = (ask: (input: Input, options: Options) => Promise<Outcome>) =>
    matcher(async (input, options) => {
      outputs.hold(input);
      const outcome = await ask(input, options);
      // What is halted ends after the other calls of the turn, where the SDK says why.
      return answer(input, { ...outcome, verdict: "block" }, { updatedToolOutput: outputs.judged(input, outcome) });
    });
  return {
    PreToolUse: matcher(async (input, options) => {
      const outcome = await yard.beforeToolDispatch(toolEvent(input), options);
      const decision = ({ proceed: undefined, allow: "allow", ask: "ask", block: "deny", halt: "deny" } as const)[outcome.verdict];
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

function matcher(ask: (input: Input, options: Options) => Promise<Answer>) {
  const hook = (input: any, _: string | undefined, options: Options): Promise<any> => ask(input, { signal: options.signal });
  // In seconds. The SDK goes on after it, so it is longer than any event takes.
  return [{ hooks: [hook], timeout: 3600, onFailure: "block" as const }];
}

/** What the SDK is told: an outcome, and what is special to the event. */
function answer({ hook_event_name: hookEventName }: Input, { verdict, proceeds, reason, notes }: Outcome, special: Answer): Answer {
  const texts = (isForModel: boolean) =>
    notes.filter(({ kind }) => (kind === "additional_context") === isForModel).map(({ text }) => text).join("\n") || undefined;
  const end = ended(verdict === "halt" ? (reason ?? "a hook ended the run") : undefined);
  const systemMessage = [end.systemMessage, texts(false)].filter(Boolean).join("\n") || undefined;
  // A refusal has the notes in its reason.
  const additionalContext = proceeds || verdict === "ask" ? texts(true) : undefined;
  return { ...end, systemMessage, hookSpecificOutput: { hookEventName, ...special, additionalContext } };
}

const ended = (reason?: string): Answer => (reason === undefined ? {} : { continue: false, stopReason: reason, systemMessage: reason });

const blocked = (reason?: string): Answer => (reason === undefined ? {} : { decision: "block", reason });

const place = (input: Input) => ({ run: input.session_id, cwd: input.cwd });

const toolEvent = (input: Input) => ({ ...place(input), tool: { name: input.tool_name, input: input.tool_input, id: input.tool_use_id } });
