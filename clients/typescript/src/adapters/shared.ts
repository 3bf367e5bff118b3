/** What the adapters have in common. */

import type { Place } from "../events.js";
import type { Outcome } from "../outcome.js";

/** What each event says beside its tool or model, or a function that says it of the framework's own context. */
export type PlaceOf<C> = Place | ((context: C) => Place);

export const placeOf = <C>(place: PlaceOf<C>, context: C): Place => (typeof place === "function" ? place(context) : place);

/** A hook ended the run. It comes out where the host has started the run, in some frameworks as the cause of another error. */
export class Halted extends Error {
  override name = "Halted";
}

/** The halt in an error of a framework, or undefined: it is another error. */
export function haltIn(error: unknown): Halted | undefined {
  if (error instanceof Halted) return error;
  if (typeof error !== "object" || error === null) return undefined;
  return haltIn((error as { error?: unknown }).error ?? (error as { cause?: unknown }).cause ?? undefined);
}

/** What the model is told in place of a result, or undefined: go on. Throws `Halted` if the run ends. */
export function refusal(outcome: Outcome, isApproved = false): string | undefined {
  const { verdict, proceeds, reason } = outcome;
  if (verdict === "halt") throw new Halted(reason ?? "a hook ended the run");
  return proceeds || (verdict === "ask" && isApproved) ? undefined : told(outcome);
}

/** The reason of an outcome that does not proceed, with the notes for the model. */
export function told({ reason, notes }: Outcome): string {
  const forModel = notes.filter(({ kind }) => kind === "additional_context").map(({ text }) => text);
  return [reason ?? "a hook blocked this", ...forModel].join("\n");
}

/** Whether hooks changed something: then `payload` takes its place. */
export const isPatched = ({ patched }: Outcome): boolean => Object.keys(patched ?? {}).length > 0;
