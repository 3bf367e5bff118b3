"""The judgement over histories out of seeds: right ones of a model, and the same with one mistake."""

import random
import unittest
from dataclasses import replace

from history import Asked, Event, Judgement, judge

SEEDS = 400


def right(seed: str) -> tuple[list[Event], list[Asked]]:
    """A register for each run that is set once, read and written at one moment between sending and answer."""
    chance = random.Random(seed)
    events, asked, halted = [], [], {}
    moment = 0.0
    for number in range(chance.randrange(5, 80)):
        moment += chance.random()
        run = f"run-{chance.randrange(4)}"
        halts = chance.random() < 0.15
        sent, answered = moment - chance.random() * 5, moment + chance.random() * 5
        event = Event(run, f"{run}/{number}", halts=halts, due=sent - chance.random(), sent=sent, answered=answered, node="n1")
        events.append(event)
        if chance.random() < 0.1:
            # Nobody heard the answer; a guard may have halted the run all the same.
            event.failures.append("no answer")
            if halts and chance.random() < 0.5:
                halted[run] = True
                asked.append((event.id, "1", "n1"))
            continue
        if run not in halted:
            asked += [(event.id, "1", "n1")] * chance.choice((1, 1, 1, 2))
        halted |= {run: True} if halts else {}
        event.verdict = "halt" if run in halted else chance.choice(("proceed", "allow", "block", "ask"))
    chance.shuffle(events)
    return events, asked


def by_pairs(events: list[Event]) -> int:
    """The definition, in the words of history.py and without anything else of it."""
    answered = [event for event in events if event.verdict is not None]
    return sum(
        late.verdict != "halt" and any(
            halt.verdict == "halt" and halt.run == late.run and halt.answered < late.sent for halt in answered
        )
        for late in answered
    )


def complaints(judgement: Judgement) -> tuple[int, ...]:
    return judgement.wrong, judgement.unfounded, judgement.unheeded, judgement.unasked, judgement.lost, judgement.unmarked


def over_seeds(at_least: int = 0):
    """Calls a test with each history. What it returns, such as how much it found to try, must come to more than `at_least`."""

    def wrap(test):
        def run(self):
            total = 0
            for seed in range(SEEDS):
                with self.subTest(seed=seed):
                    events, asked = right(str(seed))
                    total += test(self, random.Random(f"{seed}/mistake"), events, asked) or 0
            self.assertGreaterEqual(total, at_least, "the histories have too little to try")

        return run

    return wrap


class Histories(unittest.TestCase):
    @over_seeds(at_least=SEEDS)
    def test_a_right_history_is_found_right(self, _, events, asked):
        judgement = judge(events, asked, 0.0)
        self.assertEqual(complaints(judgement), (0,) * 6)
        self.assertEqual(judgement.no_verdict, sum(event.verdict is None for event in events))
        return judgement.halted_runs

    @over_seeds(at_least=SEEDS)
    def test_any_history_is_judged_as_the_definition_says(self, chance, events, asked):
        for event in events:
            if event.verdict is not None and chance.random() < 0.3:
                event.verdict = chance.choice(("halt", "proceed", "block"))
        expected = by_pairs(events)
        self.assertEqual(judge(events, asked, 0.0).wrong, expected)
        return expected

    @over_seeds(at_least=SEEDS // 4)
    def test_one_answer_that_forgets_a_halt_is_found(self, chance, events, asked):
        firsts = {}
        for event in events:
            if event.verdict == "halt":
                firsts[event.run] = min(event.answered, firsts.get(event.run, event.answered))
        bound = [event for event in events if event.verdict == "halt" and event.sent > firsts[event.run]]
        if bound:
            chance.choice(bound).verdict = chance.choice(("proceed", "block", "ask"))
            self.assertEqual(judge(events, asked, 0.0).wrong, 1)
        return bool(bound)

    @over_seeds()
    def test_a_halt_of_another_run_is_found(self, chance, events, asked):
        # As if two runs had one key.
        stray = replace(chance.choice(events), run="run-9", id="run-9/0", halts=False, verdict="halt")
        self.assertEqual(judge([*events, stray], asked, 0.0).unfounded, 1)

    @over_seeds()
    def test_a_guard_that_was_not_asked_or_not_heeded_is_found(self, chance, events, asked):
        passed = Event("run-9", "run-9/0", halts=chance.random() < 0.5, sent=1, answered=2, verdict="proceed")
        judgement = judge([*events, passed], asked, 0.0)
        self.assertEqual((judgement.unasked, judgement.unheeded), (1, 0))
        judgement = judge([*events, passed], [*asked, (passed.id, "1", "n2")], 0.0)
        self.assertEqual((judgement.unasked, judgement.unheeded), (0, int(passed.halts)))

    @over_seeds()
    def test_a_lost_and_an_unmarked_delivery_are_found(self, chance, events, asked):
        ends = [Event(f"end-{n}", f"end-{n}", lifecycle=True, verdict="proceed") for n in range(chance.randrange(1, 9))]
        told = [(end.id, str(number), "n1") for end in ends for number in range(1, chance.randrange(2, 4))]
        self.assertEqual(complaints(judge(events + ends, asked + told, 0.0)), (0,) * 6)
        one = chance.choice(ends)
        without = [entry for entry in told if entry[0] != one.id]
        self.assertEqual(judge(events + ends, asked + without, 0.0).lost, 1)
        self.assertEqual(judge(events + ends, asked + told + [(one.id, "1", "n1")], 0.0).unmarked, 1)

    @over_seeds()
    def test_neither_order_nor_the_zero_of_the_clock_matters(self, chance, events, asked):
        for event in events:
            if event.verdict is not None and chance.random() < 0.2:
                event.verdict = "proceed"
        before = complaints(judge(events, asked, 0.0))
        moved = [replace(event, due=event.due + 7, sent=event.sent + 7, answered=event.answered + 7) for event in events]
        chance.shuffle(moved)
        chance.shuffle(asked)
        self.assertEqual(complaints(judge(moved, asked, 0.0)), before)


if __name__ == "__main__":
    unittest.main()
