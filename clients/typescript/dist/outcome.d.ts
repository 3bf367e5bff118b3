/** What a host gets for an event. */
import { type Problem } from "./problem.js";
import { type CanonicalEvent, type CanonicalOutcome, type EventKind, type Note, type Report, type Verdict } from "./schema.js";
/** The answer of hookyard to one event, or what `ifDown` says in its place. `T` is the part that hooks may change. */
export interface Outcome<T = unknown> extends Partial<CanonicalOutcome> {
    event: EventKind;
    verdict: Verdict;
    /** Whether to go on: the verdict is `proceed` or `allow`. */
    proceeds: boolean;
    /** The part of the event that hooks may change (a tool's input or output, the prompt, …), with their changes: go on with this. */
    payload: T;
    notes: Note[];
    hooks: Report[];
    suppress_output: boolean;
    /** Why no hook was asked or understood: the verdict is that of `ifDown`. */
    problem?: Problem;
}
/** Reads the outcome of an event. Throws a `Problem` if it is none; then there is no verdict. */
export declare function readOutcome<T>(answer: unknown, event: CanonicalEvent): Outcome<T>;
/** The outcome of an event without a verdict of hooks. */
export declare function outcomeWithout<T>(problem: Problem, event: CanonicalEvent, verdict: "block" | "proceed"): Outcome<T>;
/** Whether a word is a kind of event. */
export declare function isEventKind(word: string): word is EventKind;
