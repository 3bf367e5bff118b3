/** Why there is no verdict of hooks. */
/** Whether the event may be sent again: `safe`: no hook has run; `may_repeat`: hooks may have run; `never`: it fails again. */
export type Retry = "safe" | "may_repeat" | "never";
/** An event without an answer, or with one that is none. */
export declare class Problem extends Error {
    /** A stable word: one of the daemon's error codes, or `down`, `lost`, `timeout`, `bad_answer`, `unknown_verdict`, `untrusted_socket`, `closed`. */
    readonly code: string;
    /** What to do. */
    readonly hint: string;
    readonly retry: Retry;
    /** The seconds after which to send the event again, if the daemon says so. */
    readonly retryAfter: number;
    readonly name = "Problem";
    constructor(
    /** A stable word: one of the daemon's error codes, or `down`, `lost`, `timeout`, `bad_answer`, `unknown_verdict`, `untrusted_socket`, `closed`. */
    code: string, message: string, 
    /** What to do. */
    hint: string, retry: Retry, 
    /** The seconds after which to send the event again, if the daemon says so. */
    retryAfter?: number);
}
export declare const down: (where: string, why: string) => Problem;
export declare const lost: (why: string) => Problem;
export declare const badAnswer: (why: string) => Problem;
/** The code of an answer with a verdict that the client does not know. */
export declare const UNKNOWN_VERDICT = "unknown_verdict";
export declare const unknownVerdict: (verdict: string) => Problem;
export declare const badEvent: (why: string) => Problem;
export declare const late: (ms: number) => Problem;
export declare const closed: () => Problem;
/** The error of a daemon, as it came. */
export declare function daemonError(error: unknown, retryAfter?: number): Problem;
