"""The judgement over histories that are written by hand.

    python3 -m unittest discover tests/cluster
"""

import unittest

from history import Asked, Event, Judgement, judge


def tool(run: str, sent: float, answered: float, verdict: str | None, **more) -> Event:
    return Event(run, f"{run}@{sent}", due=sent, sent=sent, answered=answered, verdict=verdict, **more)


def once(*events: Event) -> list[Asked]:
    return [(event.id, "1", "n1") for event in events]


def found(*events: Event, asked: list[Asked] | None = None, over: float = 100.0) -> Judgement:
    return judge(list(events), once(*events) if asked is None else asked, over)


class Halts(unittest.TestCase):
    def test_an_event_that_began_after_a_halt_must_be_halted(self):
        self.assertEqual(found(tool("a", 1, 2, "halt"), tool("a", 3, 4, "proceed")).wrong, 1)
        self.assertEqual(found(tool("a", 1, 2, "halt"), tool("a", 3, 4, "block")).wrong, 1)
        self.assertEqual(found(tool("a", 1, 2, "halt"), tool("a", 3, 4, "halt")).wrong, 0)

    def test_an_event_that_began_before_the_halt_was_received_may_pass(self):
        self.assertEqual(found(tool("a", 1, 3, "halt"), tool("a", 2, 9, "proceed")).wrong, 0)

    def test_the_first_halt_counts_in_whatever_order_they_are_written_down(self):
        self.assertEqual(found(tool("a", 7, 8, "halt"), tool("a", 4, 5, "proceed"), tool("a", 1, 2, "halt")).wrong, 1)

    def test_a_halt_binds_its_own_run(self):
        self.assertEqual(found(tool("a", 1, 2, "halt"), tool("b", 3, 4, "proceed")).wrong, 0)

    def test_wrong_answers_are_told_apart_by_the_end_of_the_fault(self):
        events = [tool("a", 1, 2, "halt"), tool("a", 3, 5.5, "proceed"), tool("a", 6, 7, "proceed")]
        judgement = found(*events, over=5)
        self.assertEqual((judgement.wrong, judgement.wrong_after, judgement.wrong_runs), (2, 1, 1))

    def test_no_verdict_is_not_a_wrong_one(self):
        judgement = found(tool("a", 1, 2, "halt"), tool("a", 3, 0, None, failures=["reset"]))
        self.assertEqual((judgement.wrong, judgement.no_verdict, judgement.first_failed), (0, 1, 1))


    def test_a_lifecycle_event_neither_halts_a_run_nor_breaks_a_halt(self):
        self.assertEqual(found(tool("a", 1, 2, "halt", lifecycle=True), tool("a", 3, 4, "proceed")).wrong, 0)
        self.assertEqual(found(tool("a", 1, 2, "halt"), tool("a", 3, 4, "proceed", lifecycle=True)).wrong, 0)

    def test_a_halt_that_no_guard_gave_is_unfounded(self):
        asks, never = tool("a", 2, 3, "halt", halts=True), tool("b", 4, 5, "halt")
        self.assertEqual(found(asks, tool("a", 4, 5, "halt"), never).unfounded, 1)
        self.assertEqual(found(tool("a", 0, 1, "halt"), asks).unfounded, 1, "answered before the first guard was asked")

    def test_a_guard_that_was_asked_is_heeded(self):
        passed, blocked = tool("a", 1, 2, "proceed", halts=True), tool("b", 1, 2, "block", halts=True)
        self.assertEqual(found(passed, blocked).unheeded, 1)
        self.assertEqual(found(passed, asked=[]).unheeded, 0, "it is unasked")


class Waits(unittest.TestCase):
    def test_a_wait_begins_when_the_event_was_due(self):
        late = Event("a", "a", due=1, sent=3, answered=4, verdict="proceed")
        self.assertEqual(found(late).wait_ms(1.0), 3000.0)

    def test_an_event_that_was_given_up_has_waited(self):
        self.assertEqual(found(tool("a", 1, 31, None), tool("b", 1, 2, "proceed")).wait_ms(1.0), 30_000.0)


class Hooks(unittest.TestCase):
    def test_hooks_that_began_twice_are_counted_once_for_each_event(self):
        event = tool("a", 1, 2, "proceed")
        self.assertEqual(found(event, asked=once(event, event, event)).twice, 1)

    def test_an_event_that_passed_without_a_hook_is_found(self):
        self.assertEqual(found(tool("a", 1, 2, "proceed"), asked=[]).unasked, 1)
        self.assertEqual(found(tool("a", 1, 2, "block"), asked=[]).unasked, 0)
        self.assertEqual(found(tool("a", 1, 2, "halt"), asked=[]).unasked, 0)

    def test_a_lifecycle_event_is_lost_only_if_it_was_accepted(self):
        accepted, refused = tool("a", 1, 2, "proceed", lifecycle=True), tool("b", 1, 2, None, lifecycle=True)
        judgement = found(accepted, refused, asked=[])
        self.assertEqual((judgement.accepted, judgement.lost), (1, 1))
        judgement = found(accepted, refused, asked=once(accepted, accepted))
        self.assertEqual((judgement.lost, judgement.delivered_again, judgement.twice), (0, 1, 0))

    def test_a_second_delivery_has_another_number(self):
        event = tool("a", 1, 2, "proceed", lifecycle=True)
        numbered = [(event.id, "1", "n1"), (event.id, "2", "n1"), (event.id, "1", "n2")]
        self.assertEqual(found(event, asked=numbered).unmarked, 0)
        self.assertEqual(found(event, asked=[*numbered, (event.id, "2", "n1")]).unmarked, 1)
        again = tool("b", 1, 2, "proceed", lifecycle=True, failures=["no answer"])
        self.assertEqual(found(again, asked=once(again, again)).unmarked, 0, "a host that asks again may have two")


class Sums(unittest.TestCase):
    def test_rounds_are_added_up(self):
        total = Judgement()
        for _ in range(2):
            total.add(found(tool("a", 1, 2, "halt"), tool("a", 3, 4, "proceed", failures=["reset", "refused"])))
        self.assertEqual((total.events, total.wrong, total.first_failed), (4, 2, 2))
        self.assertEqual((total.failures["reset"], len(total.waits)), (2, 4))
        self.assertEqual(total.wait_ms(1.0), 1000.0)

    def test_halts_unstored_are_unknown_only_if_no_round_knows(self):
        total = Judgement()
        total.add(Judgement())
        self.assertIsNone(total.unstored)
        for known in (2, 0, None):
            total.add(Judgement(unstored=known))
        self.assertEqual(total.unstored, 2)


if __name__ == "__main__":
    unittest.main()
