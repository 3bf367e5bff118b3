/** How events get to a daemon. */
import type { CanonicalEvent } from "./schema.js";
/** An event on its way. */
export interface Flight {
    /** The outcome as it came, which nobody else has. Rejects with a `Problem`, or with the reason of `cancel`. */
    answer: Promise<unknown>;
    /** Ends the event with this reason, and its hooks. */
    cancel(reason: unknown): void;
}
/** One way to a daemon. */
export interface Door {
    /** Sends an event, which is JSON, and was `from` this. */
    ask(event: string, traceparent: string | undefined, from: CanonicalEvent): Flight;
    /** Ends what is in flight and all connections. */
    close(): void;
}
/** The longest answer, in bytes. */
export declare const LONGEST_ANSWER: number;
