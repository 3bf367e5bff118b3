"""What the control plane says of an edge, from lines written by hand.

    python3 -m unittest discover tests/fleet
"""

import json
import tempfile
import unittest
from pathlib import Path

import view

NOW = 1_769_860_800.0
AT = "2026-01-31T12:00:00.000Z"


def state(**more) -> dict:
    bundle = {"name": "acme/guards", "version": 2, "standing": "current", "error": None} | more.pop("bundle", {})
    return {"node": "e", "at": AT, "state": {"hooks": 2, "failed_open": 0, "bundle": bundle} | more}


def verdict(number: int, ended: str = "completed") -> dict:
    return {"node": "e", "at": AT, "decision_id": f"e-{number}", "verdict": "block", "hooks": [{"hook": "guard", "ended": ended}]}


class Edge(unittest.TestCase):
    def view(self, *lines: dict | str, received: float = NOW) -> view.EdgeView:
        with tempfile.TemporaryDirectory() as place:
            edge = Path(place) / "e"
            edge.mkdir()
            data = b"".join((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n" for line in lines)
            # What stands behind the last entry does not count.
            (edge / "2026-01-31.ndjson").write_bytes(data + b'{"verdict":"block","decision_id":"x"}\n')
            entry = {"batch": "a", "at": received, "end": len(data), "lines": len(lines), "again": 0, "wire": 9}
            (edge / "2026-01-31.batches").write_text(json.dumps(entry) + '\n{"half')
            return view.read(Path(place))["e"]

    def wrong(self, *lines: dict | str, now: float = NOW, received: float = NOW) -> list[str]:
        return [text.split(":")[0] for text in self.view(*lines, received=received).wrong(now, 2, 60)]

    def test_an_edge_that_is_as_it_should_be(self):
        self.assertEqual(self.wrong(state(), verdict(1)), [])

    def test_what_is_wrong_is_said(self):
        unusable = {"version": None, "standing": "unusable", "error": "no key"}
        for lines, expected in (
            ([state(bundle={"version": 1})], ["behind"]),
            ([state(bundle=unusable)], ["bundle unusable"]),
            ([state(bundle={"standing": "expired"})], ["bundle expired"]),
            ([state(bundle={"error": "it is older"})], ["bundle"]),
            ([state(bundle={"version": 3})], []),
            ([state(bundle={"copy_changes": 1, "last_copy_change": "`x.sh` was changed"})], ["somebody changed its copy of the bundle once"]),
            ([state(audit={"shipping": {"dropped": 3}})], ["3 of its lines are lost"]),
            ([state(broken=[1], not_loaded=[1])], ["broken or missing"]),
            ([state(), verdict(1, "untrusted")], ["hook guard ended as untrusted in 1 of its last 1 verdicts"]),
            ([verdict(1, "untrusted"), state(started_at=NOW + 1)], []),
        ):
            with self.subTest(expected=expected):
                self.assertEqual(self.wrong(*lines), expected)

    def test_silence_and_delay(self):
        self.assertEqual(self.wrong(state(), now=NOW + 179), [])
        self.assertEqual(self.wrong(state(), now=NOW + 181), ["silent for 181 s"])
        self.assertEqual(self.wrong(state(), now=NOW + 200, received=NOW + 190), ["late"])
        self.assertEqual(view.EdgeView("e").wrong(NOW, 2, 60), ["it has never been heard of"])

    def test_each_verdict_counts_once(self):
        found = self.view(verdict(1), verdict(2), verdict(1))
        self.assertEqual((found.verdicts, found.twice, found.lines), (2, 1, 3))

    def test_nonsense_hides_nothing_else(self):
        odd = [
            '{"state":7}', '{"state":{"hooks":1e999}}', '{"state":{"hooks":"x"}}', '{"verdict":1}',
            '{"verdict":1,"decision_id":2,"at":[]}', "[]", '{"unreadable":"x"}',
        ]
        found = self.view(*odd, state(), verdict(1))
        self.assertEqual((found.unreadable, found.state.version), (len(odd), 2))
        self.assertEqual(self.wrong(*odd, state(), received=NOW), ["7 of its lines are none of hookyard"])


if __name__ == "__main__":
    unittest.main()
