"""The judgement over histories that are written by hand, and the settings of the balancer.

    python3 -m unittest discover tests/cluster
"""

import unittest

import balancer
from history import Event, Judgement, judge


def tool(run: str, sent: float, answered: float, verdict: str | None, **more) -> Event:
    return Event(run, f"{run}@{sent}", due=sent, sent=sent, answered=answered, verdict=verdict, **more)


def once(*events: Event) -> list[tuple[str, str]]:
    return [(event.id, "1") for event in events]


def found(*events: Event, asked: list[tuple[str, str]] | None = None, over: float = 100.0) -> Judgement:
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
        events = [tool("a", 1, 2, "halt"), tool("a", 3, 4, "proceed"), tool("a", 6, 7, "proceed")]
        judgement = found(*events, over=5)
        self.assertEqual((judgement.wrong, judgement.wrong_after, judgement.wrong_runs), (2, 1, 1))

    def test_no_verdict_is_not_a_wrong_one(self):
        judgement = found(tool("a", 1, 2, "halt"), tool("a", 3, 0, None, failures=["reset"]))
        self.assertEqual((judgement.wrong, judgement.no_verdict, judgement.first_failed), (0, 1, 1))


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


class Sums(unittest.TestCase):
    def test_rounds_are_added_up(self):
        total = Judgement()
        for _ in range(2):
            total.add(found(tool("a", 1, 2, "halt"), tool("a", 3, 4, "proceed", failures=["reset", "refused"])))
        self.assertEqual((total.events, total.wrong, total.first_failed), (4, 2, 2))
        self.assertEqual((total.failures["reset"], len(total.waits)), (2, 4))
        self.assertEqual(total.wait_ms(1.0), 1000.0)


class Balancer(unittest.TestCase):
    nodes = {"n1": "127.0.0.1:1", "n2": "127.0.0.1:2", "n3": "127.0.0.1:3"}

    def test_the_shipped_settings_get_addresses_and_lose_what_is_switched_off(self):
        both = balancer.configuration("127.0.0.1:9", self.nodes, stick=True, retries=True)
        neither = balancer.configuration("127.0.0.1:9", self.nodes, stick=False, retries=False)
        self.assertIn("server n3 127.0.0.1:3 tcp-ut 3s\n", both)
        self.assertNotIn("10.0.0.", both)
        for word in ("    stick on", "    stick-table", "    retry-on", "    option redispatch"):
            self.assertIn(word, both)
            self.assertNotIn(word, neither)
        self.assertIn("    retries 0\n", neither)

    def test_a_cluster_of_one_node_has_no_other_server(self):
        one = balancer.configuration("127.0.0.1:9", {"n1": "127.0.0.1:1"}, stick=True, retries=True)
        self.assertEqual(one.count("    server "), 1)


if __name__ == "__main__":
    unittest.main()
