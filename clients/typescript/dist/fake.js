/** A hookyard without a daemon, for the tests of a host. */
import { Hookyard } from "./hookyard.js";
import { parse } from "./json.js";
import { closed } from "./problem.js";
import { isEventKind } from "./outcome.js";
/** A hookyard that answers what a test says. */
export class FakeHookyard extends Hookyard {
    /** The events so far, as a daemon would have got them. */
    events;
    constructor(answers, options) {
        const unknown = Object.keys(answers).find((kind) => !isEventKind(kind));
        if (unknown !== undefined)
            throw new TypeError(`there is no event of the kind "${unknown}"`);
        const door = new FakeDoor(answers);
        super(door, { retryForMs: 0, ...options });
        this.events = door.events;
    }
}
/** Answers events of these kinds so, and `proceed` to all others. */
export function fake(answers = {}, options = {}) {
    return new FakeHookyard(answers, options);
}
class FakeDoor {
    answers;
    events = [];
    #isClosed = false;
    constructor(answers) {
        this.answers = answers;
    }
    ask(text) {
        return { answer: this.#answer(text), cancel: () => { } };
    }
    close() {
        this.#isClosed = true;
    }
    async #answer(text) {
        if (this.#isClosed)
            throw closed();
        const event = parse(text);
        const count = this.events.push(event);
        const answer = this.answers[event.event];
        const parts = typeof answer === "function" ? answer(event) : answer;
        const ids = { decision_id: `fake-${count}`, event: event.event, snapshot_version: 1 };
        return { ...ids, verdict: "proceed", suppress_output: false, hooks: [], ...parts };
    }
}
