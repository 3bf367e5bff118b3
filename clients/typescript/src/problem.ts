/** Why there is no verdict of hooks. */

/** Whether the event may be sent again: `safe`: no hook has run; `may_repeat`: hooks may have run; `never`: it fails again. */
export type Retry = "safe" | "may_repeat" | "never";

const RETRIES: readonly unknown[] = ["safe", "may_repeat", "never"];

/** An event without an answer, or with one that is none. */
export class Problem extends Error {
  override readonly name = "Problem";

  constructor(
    /** A stable word: one of the daemon's error codes, or `down`, `lost`, `timeout`, `bad_answer`, `unknown_verdict`, `untrusted_socket`, `closed`. */
    readonly code: string,
    message: string,
    /** What to do. */
    readonly hint: string,
    readonly retry: Retry,
    /** The seconds after which to send the event again, if the daemon says so. */
    readonly retryAfter = 0,
  ) {
    super(message);
  }
}

export const down = (where: string, why: string): Problem =>
  new Problem("down", `no daemon answers at ${where}: ${why}`, "start `hookyard serve`, or correct the address", "safe");

export const lost = (why: string): Problem =>
  new Problem(
    "lost",
    `the connection ended before the answer: ${why}`,
    "look at the log of the daemon; give the event an `id`, so that it can be sent again without running hooks twice",
    "may_repeat",
  );

export const badAnswer = (why: string): Problem =>
  new Problem("bad_answer", `the answer is invalid: ${why}`, "check that this is a hookyard of a version that the client knows", "never");

/** The code of an answer with a verdict that the client does not know. */
export const UNKNOWN_VERDICT = "unknown_verdict";

export const unknownVerdict = (verdict: string): Problem =>
  new Problem(UNKNOWN_VERDICT, `the verdict of the answer is ${verdict}`, "use a client of the daemon's version", "never");

export const badEvent = (why: string): Problem =>
  new Problem("bad_event", `the event has no JSON form: ${why}`, "make plain objects and arrays of it", "never");

export const late = (ms: number): Problem =>
  new Problem("timeout", `no answer within ${ms} ms`, "look at `hookyard status` for what is slow, or raise `timeoutMs`", "may_repeat");

export const closed = (): Problem => new Problem("closed", "this client is closed", "connect again", "never");

/** The error of a daemon, as it came. */
export function daemonError(error: unknown, retryAfter?: number): Problem {
  const { code, message, hint, retry, retry_after } = (error ?? {}) as Record<string, unknown>;
  if (typeof code !== "string" || typeof message !== "string" || !RETRIES.includes(retry)) {
    return badAnswer("an error without `code`, `message` and `retry`");
  }
  const seconds = retryAfter ?? (typeof retry_after === "number" ? retry_after : 0);
  return new Problem(code, message, typeof hint === "string" ? hint : "", retry as Retry, seconds);
}
