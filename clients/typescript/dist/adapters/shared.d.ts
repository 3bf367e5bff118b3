/** What the adapters have in common. */
import type { Place } from "../events.js";
import type { Outcome } from "../outcome.js";
/** What each event says beside its tool or model, or a function that says it of the framework's own context. */
export type PlaceOf<C> = Place | ((context: C) => Place);
export declare const placeOf: <C>(place: PlaceOf<C>, context: C) => Place;
/** A hook ended the run. It comes out where the host has started the run, in some frameworks as the cause of another error. */
export declare class Halted extends Error {
    name: string;
}
/** The halt in an error of a framework, or undefined: it is another error. */
export declare function haltIn(error: unknown): Halted | undefined;
/** What the model is told in place of a result, or undefined: go on. Throws `Halted` if the run ends. */
export declare function refusal(outcome: Outcome, isApproved?: boolean): string | undefined;
/** The reason of an outcome that does not proceed, with the notes for the model. */
export declare function told({ reason, notes }: Outcome): string;
/** Whether hooks changed something: then `payload` takes its place. */
export declare const isPatched: ({ patched }: Outcome) => boolean;
