/** A client of hookyard: asks about events, and decides where there is no answer. */

import { setTimeout as sleep } from "node:timers/promises";

import type { Door } from "./door.js";
import { Events, type CallOptions } from "./events.js";
import { checkForm, stringify } from "./json.js";
import { outcomeWithout, readOutcome, type Outcome } from "./outcome.js";
import { badEvent, late, Problem, UNKNOWN_VERDICT } from "./problem.js";
import type { CanonicalEvent } from "./schema.js";

/** What holds for all events of a client. */
export interface Options extends Omit<CallOptions, "signal"> {
  /** Is told of each event without a verdict of hooks. Without it, an event that goes on all the same is a warning of the process. */
  onProblem?: (problem: Problem, outcome: Outcome) => void;
}

/** Hooks may take ten minutes. */
const TIMEOUT_MS = 600_000;

/** How long a guard waits for a daemon that restarts. */
const RETRY_FOR_MS = 5_000;

/** The pauses between two attempts, in milliseconds. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 160;

/** The form of a W3C trace context; any other is ignored. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

type Limits = Required<Pick<CallOptions, "ifDown" | "timeoutMs" | "retryForMs">>;

/** A client of one daemon. */
export class Hookyard extends Events {
  readonly #door: Door;
  readonly #options: Options;

  constructor(door: Door, options: Options = {}) {
    super();
    limitsOf(options);
    this.#door = door;
    this.#options = options;
  }

  /** Never rejects for want of an answer: then the verdict is that of `ifDown`, and `problem` says why. */
  async dispatch<T>(event: CanonicalEvent, options: CallOptions = {}): Promise<Outcome<T>> {
    const limits = limitsOf(options, this.#options);
    try {
      return readOutcome<T>(await this.#ask(event, limits, options), event);
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      const problem = error instanceof Problem ? error : new Problem("failed", String(error), "report this", "never");
      // Hooks have said something, and nobody knows what: no reason to go on.
      const mayProceed = limits.ifDown === "allow" && problem.code !== UNKNOWN_VERDICT;
      const outcome = outcomeWithout<T>(problem, event, mayProceed ? "proceed" : "block");
      this.#report(problem, outcome);
      return outcome;
    }
  }

  /** Ends the connections. Events in flight have no answer. */
  close(): void {
    this.#door.close();
  }

  async #ask(event: CanonicalEvent, limits: Limits, { signal, traceparent }: CallOptions): Promise<unknown> {
    const text = textOf(event);
    const hasId = event.event_id != null || event.tool_call_id != null;
    const trace = traceOf(traceparent ?? this.#options.traceparent);
    const start = performance.now();
    const deadline = start + limits.timeoutMs;
    const lastRetry = Math.min(deadline, start + limits.retryForMs);
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      signal?.throwIfAborted();
      const flight = this.#door.ask(text, trace, event);
      const timer = setTimeout(() => flight.cancel(late(limits.timeoutMs)), deadline - performance.now());
      const abort = (): void => flight.cancel(signal?.reason);
      signal?.addEventListener("abort", abort);
      let wait: number;
      try {
        return await flight.answer;
      } catch (error) {
        const mayRetry = error instanceof Problem && (error.retry === "safe" || (error.retry === "may_repeat" && hasId));
        if (!mayRetry) throw error;
        wait = Math.max(pause, error.retryAfter * 1000);
        if (performance.now() + wait >= lastRetry) throw error;
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
      }
      await sleep(wait, undefined, signal && { signal });
    }
  }

  #report(problem: Problem, outcome: Outcome): void {
    if (this.#options.onProblem) this.#options.onProblem(problem, outcome);
    else if (outcome.proceeds) process.emitWarning(outcome.reason ?? problem.message, { type: "HookyardWarning", code: problem.code });
  }
}

function limitsOf(options: CallOptions, defaults: Options = {}): Limits {
  const ifDown = options.ifDown ?? defaults.ifDown ?? "block";
  const timeoutMs = options.timeoutMs ?? defaults.timeoutMs ?? TIMEOUT_MS;
  const retryForMs = options.retryForMs ?? defaults.retryForMs ?? (ifDown === "block" ? RETRY_FOR_MS : 0);
  if (ifDown !== "block" && ifDown !== "allow") throw new TypeError(`ifDown is ${String(ifDown)}, not "block" or "allow"`);
  // The longest that a timer of Node waits.
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) throw new TypeError(`timeoutMs is ${timeoutMs}, not between 0 and 24 days`);
  if (!(retryForMs >= 0)) throw new TypeError(`retryForMs is ${retryForMs}, not a time`);
  return { ifDown, timeoutMs, retryForMs };
}

function textOf(event: CanonicalEvent): string {
  try {
    const text = stringify(event);
    checkForm(event);
    return text;
  } catch (error) {
    throw badEvent(error instanceof Error ? error.message : String(error));
  }
}

function traceOf(traceparent: CallOptions["traceparent"]): string | undefined {
  const trace = typeof traceparent === "function" ? traceparent() : traceparent;
  return trace !== undefined && TRACEPARENT.test(trace) ? trace : undefined;
}
