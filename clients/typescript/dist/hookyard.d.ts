/** A client of hookyard: asks about events, and decides where there is no answer. */
import type { Door } from "./door.js";
import { Events, type CallOptions } from "./events.js";
import { type Outcome } from "./outcome.js";
import { Problem } from "./problem.js";
import type { CanonicalEvent } from "./schema.js";
/** What holds for all events of a client. */
export interface Options extends Omit<CallOptions, "signal"> {
    /** Is told of each event without a verdict of hooks. Without it, an event that goes on all the same is a warning of the process. */
    onProblem?: (problem: Problem, outcome: Outcome) => void;
}
/** A client of one daemon. */
export declare class Hookyard extends Events {
    #private;
    constructor(door: Door, options?: Options);
    /** Never rejects for want of an answer: then the verdict is that of `ifDown`, and `problem` says why. */
    dispatch<T>(event: CanonicalEvent, options?: CallOptions): Promise<Outcome<T>>;
    /** Ends the connections. Events in flight have no answer. */
    close(): void;
}
