/** What the compiler must accept, and what it must not. It is compiled and never run. */

import { connect, fake, type Outcome, type Verdict } from "../dist/index.js";
import { serve } from "../dist/worker.js";

/** A new verdict would stop this from compiling. */
export function act(verdict: Verdict): string {
  switch (verdict) {
    case "proceed":
    case "allow":
      return "go on";
    case "ask":
      return "ask a person";
    case "block":
      return "tell the model";
    case "halt":
      return "end the run";
  }
}

export async function payloads(): Promise<string> {
  const yard = await connect({ lines: "/run/hookyard/hookyard-lines.sock", ifDown: "block" });
  const outcome = await yard.beforeToolDispatch({ run: "r", tool: { name: "Bash", input: { command: "ls" } } });
  const prompt: Outcome<string> = await yard.promptSubmitted({ run: "r", prompt: "hello" });
  // @ts-expect-error: there is no such verdict.
  if (outcome.verdict === "deny") return "";
  // @ts-expect-error: a tool has a name.
  await yard.beforeToolDispatch({ run: "r", tool: { input: {} } });
  // @ts-expect-error: there is no such choice.
  await connect({ ifDown: "alow" });
  // @ts-expect-error: there is no such kind of event.
  fake({ before_tool_dispach: {} });
  return outcome.payload.command + prompt.payload;
}

export async function worker(): Promise<void> {
  await serve(({ tool_input }) => (tool_input.command === "ls" ? undefined : { decision: "block" }));
  await serve(async (_, signal) => ({ reason: String(signal.aborted) }));
  // @ts-expect-error: an output is an object.
  await serve(() => "block");
}
