"""Laws of the simulation of throttled nodes."""

import unittest

import simulation
from history import percentile
from simulation import Service
from throttle import PERIOD_US

SERVICE = Service(work_us=300, wait_ms=15, share=0.1)


class Rings(unittest.TestCase):
    def test_the_shares_are_everything_and_more_points_make_them_more_even(self):
        largest = []
        for points in (16, 4096):
            shares = simulation.ring(8, points, seed=1)
            self.assertAlmostEqual(sum(shares), 1)
            largest.append(max(shares) * 8)
        self.assertGreater(largest[0], 1.15)
        self.assertLess(largest[1], 1.05)


class Nodes(unittest.TestCase):
    def test_an_event_alone_takes_its_work_and_its_wait(self):
        waits = simulation.waits_ms([1.0], 1e-5, SERVICE)
        self.assertAlmostEqual(percentile(waits, 0.5), 15.3)

    def test_work_beyond_the_part_of_a_period_waits_for_the_next(self):
        waits = simulation.waits_ms([1.0], 1e-5, Service(work_us=2_500, wait_ms=0, share=0.1))
        # Three periods have a part of it.
        self.assertTrue(all(PERIOD_US / 1000 < wait < 3 * PERIOD_US / 1000 for wait in waits))

    def test_a_node_answers_what_its_part_allows_and_no_more(self):
        most = SERVICE.share * 1e6 / SERVICE.work_us
        found = simulation.limit([1.0], SERVICE, 60)
        self.assertGreater(found, 0.75 * most)
        self.assertLessEqual(found, most)

    def test_the_node_with_the_largest_share_is_the_limit_of_all(self):
        even = simulation.limit([1 / 8] * 8, SERVICE, 60)
        uneven = simulation.limit([1.2 / 8, *[6.8 / 56] * 7], SERVICE, 60)
        self.assertAlmostEqual(even / uneven, 1.2, delta=0.08)


if __name__ == "__main__":
    unittest.main()
