/** A hookyard without a daemon, for the tests of a host. */
import { Hookyard, type Options } from "./hookyard.js";
import type { CanonicalEvent, CanonicalOutcome, EventKind } from "./schema.js";
/** Parts of an outcome, or a function that makes them of an event. It may throw a `Problem`: then there is no answer. */
export type FakeAnswer = Partial<CanonicalOutcome> | ((event: CanonicalEvent) => Partial<CanonicalOutcome>);
/** A hookyard that answers what a test says. */
export declare class FakeHookyard extends Hookyard {
    /** The events so far, as a daemon would have got them. */
    readonly events: CanonicalEvent[];
    constructor(answers: Partial<Record<EventKind, FakeAnswer>>, options: Options);
}
/** Answers events of these kinds so, and `proceed` to all others. */
export declare function fake(answers?: Partial<Record<EventKind, FakeAnswer>>, options?: Options): FakeHookyard;
