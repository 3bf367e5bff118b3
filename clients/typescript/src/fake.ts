/** A hookyard without a daemon, for the tests of a host. */

import type { Door, Flight } from "./door.js";
import { Hookyard, type Options } from "./hookyard.js";
import { parse } from "./json.js";
import { closed } from "./problem.js";
import { isEventKind } from "./outcome.js";
import type { CanonicalEvent, CanonicalOutcome, EventKind } from "./schema.js";

/** Parts of an outcome, or a function that makes them of an event. It may throw a `Problem`: then there is no answer. */
export type FakeAnswer = Partial<CanonicalOutcome> | ((event: CanonicalEvent) => Partial<CanonicalOutcome>);

/** A hookyard that answers what a test says. */
export class FakeHookyard extends Hookyard {
  /** The events so far, as a daemon would have got them. */
  readonly events: CanonicalEvent[];

  constructor(answers: Partial<Record<EventKind, FakeAnswer>>, options: Options) {
    const unknown = Object.keys(answers).find((kind) => !isEventKind(kind));
    if (unknown !== undefined) throw new TypeError(`there is no event of the kind "${unknown}"`);
    const door = new FakeDoor(answers);
    super(door, { retryForMs: 0, ...options });
    this.events = door.events;
  }
}

/** Answers events of these kinds so, and `proceed` to all others. */
export function fake(answers: Partial<Record<EventKind, FakeAnswer>> = {}, options: Options = {}): FakeHookyard {
  return new FakeHookyard(answers, options);
}

class FakeDoor implements Door {
  readonly events: CanonicalEvent[] = [];
  #isClosed = false;

  constructor(private readonly answers: Partial<Record<EventKind, FakeAnswer>>) {}

  ask(text: string): Flight {
    return { answer: this.#answer(text), cancel: () => {} };
  }

  close(): void {
    this.#isClosed = true;
  }

  async #answer(text: string): Promise<CanonicalOutcome> {
    if (this.#isClosed) throw closed();
    const event = parse(text) as CanonicalEvent;
    const count = this.events.push(event);
    const answer = this.answers[event.event];
    const parts = typeof answer === "function" ? answer(event) : answer;
    const ids = { decision_id: `fake-${count}`, event: event.event, snapshot_version: 1 };
    return { ...ids, verdict: "proceed", suppress_output: false, hooks: [], ...parts };
  }
}
