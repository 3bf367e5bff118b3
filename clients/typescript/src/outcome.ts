/** What a host gets for an event. */

import { badAnswer, unknownVerdict, type Problem } from "./problem.js";
import {
  EVENT_KINDS, VERDICTS,
  type CanonicalEvent, type CanonicalOutcome, type EventKind, type Note, type Report, type Target, type Verdict,
} from "./schema.js";

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

/** The part of an event that its hooks may change. */
const TARGET_OF: Partial<Record<EventKind, Target>> = {
  prompt_submitted: "prompt",
  before_context_compact: "context",
  after_context_compact: "context",
  before_context_build: "context",
  after_context_build: "context",
  before_model_call: "model_request",
  after_model_call: "model_response",
  before_tool_selection: "tool_config",
  before_tool_dispatch: "tool_input",
  after_tool_dispatch: "tool_output",
  permission_requested: "tool_input",
};

/** Reads the outcome of an event. Throws a `Problem` if it is none; then there is no verdict. */
export function readOutcome<T>(answer: unknown, event: CanonicalEvent): Outcome<T> {
  if (!isObject(answer)) throw badAnswer("it is not an object");
  const { verdict, event: kind, patched = {}, notes = [], hooks, reason, suppress_output } = answer;
  if (typeof verdict !== "string") throw badAnswer(`its verdict is ${shown(verdict)}`);
  if (!VERDICTS.includes(verdict as Verdict)) throw unknownVerdict(shown(verdict));
  if (kind !== event.event) throw badAnswer(`it is about ${shown(kind)}, not about "${event.event}"`);
  if (!isObject(patched)) throw badAnswer("its `patched` is not an object");
  if (!Array.isArray(notes) || !Array.isArray(hooks)) throw badAnswer("its `notes` or `hooks` are not a list");
  if (reason !== undefined && typeof reason !== "string") throw badAnswer("its `reason` is not a text");
  if (typeof suppress_output !== "boolean") throw badAnswer("its `suppress_output` is not a boolean");
  const proceeds = verdict === "proceed" || verdict === "allow";
  // Nobody else has the answer. A copy, `{ ...answer }`, takes longer than all that is done here.
  const more = { notes: notes as Note[], proceeds, payload: payloadOf(event, patched) as T };
  return Object.assign(answer as unknown as CanonicalOutcome, more);
}

/** The outcome of an event without a verdict of hooks. */
export function outcomeWithout<T>(problem: Problem, event: CanonicalEvent, verdict: "block" | "proceed"): Outcome<T> {
  return {
    event: event.event,
    verdict,
    proceeds: verdict === "proceed",
    reason: `hookyard gave no verdict: ${problem.message}; ${problem.hint}`,
    payload: payloadOf(event, {}) as T,
    notes: [],
    hooks: [],
    suppress_output: false,
    problem,
  };
}

/** Whether a word is a kind of event. */
export function isEventKind(word: string): word is EventKind {
  return EVENT_KINDS.includes(word as EventKind);
}

function payloadOf(event: CanonicalEvent, patched: Record<string, unknown>): unknown {
  const target = TARGET_OF[event.event];
  if (target === undefined) return undefined;
  return Object.hasOwn(patched, target) ? patched[target] : event[target];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A part of an answer, as far as a person reads it. */
function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : value === undefined ? "missing" : `a ${typeof value}`;
}
