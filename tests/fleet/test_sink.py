"""The sink of config/fleet, with batches written by hand: what counts after a crash, what comes twice, what is refused.

    python3 -m unittest discover tests/fleet
"""

import gzip
import hashlib
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "config/fleet"))

import load  # noqa: E402
import sink  # noqa: E402

NODE, TOKEN, NOON = "edge-7", "a-token", 1_769_860_800.0
DAY = "2026-01-31"


def lines(*numbers: int) -> list[bytes]:
    return [json.dumps({"node": NODE, "n": number}).encode() + b"\n" for number in numbers]


def body(*numbers: int) -> bytes:
    return gzip.compress(b"".join(lines(*numbers)))


class Store(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.directory = Path(self.place.name) / NODE

    def edge(self):
        return sink.Edge(self.directory)

    def kept(self, day: str = DAY) -> list[int]:
        return [json.loads(line)["n"] for line in (self.directory / f"{day}.ndjson").read_text().splitlines()]

    def test_a_batch_that_comes_again_is_counted_and_not_kept_again(self):
        edge = self.edge()
        self.assertEqual(edge.add("a", lines(1, 2), 9, NOON), 0)
        self.assertEqual(edge.add("a", lines(1, 2), 9, NOON), 2)
        self.assertEqual(edge.add("b", lines(3), 9, NOON), 0)
        self.assertEqual(edge.add("a", lines(1, 2), 9, NOON), 2)
        self.assertEqual(self.kept(), [1, 2, 3])

    def test_after_a_lost_answer_the_lines_come_again_with_others(self):
        for is_killed in (False, True):
            edge = self.edge()
            for name, sent, again in (("a", (1, 2), 0), ("b", (1, 2, 3), 2), ("c", (1, 2, 3, 4), 3), ("d", (5,), 0)):
                edge = self.edge() if is_killed else edge
                self.assertEqual(edge.add(f"{name}{is_killed}", lines(*(n + 10 * is_killed for n in sent)), 9, NOON), again)
        self.assertEqual(self.kept(), [1, 2, 3, 4, 5, 11, 12, 13, 14, 15])

    def test_a_batch_is_known_after_a_restart_and_on_the_next_day(self):
        self.edge().add("a", lines(1), 9, NOON)
        self.assertEqual(self.edge().add("a", lines(1), 9, NOON), 1)
        self.assertEqual(self.edge().add("a", lines(1), 9, NOON + 86_400), 1)
        self.assertEqual(self.edge().add("b", lines(2), 9, NOON + 86_400), 0)
        self.assertEqual((self.kept(), self.kept("2026-02-01")), ([1], [2]))

    def test_lines_without_their_entry_do_not_count(self):
        self.edge().add("a", lines(1), 9, NOON)
        for number, left in enumerate((lines(2)[0], b'{"node":"edge-7","n', b"\0\0"), 3):
            with (self.directory / f"{DAY}.ndjson").open("ab") as file:
                file.write(left)
            self.assertEqual(self.edge().add(f"b{number}", lines(number), 9, NOON), 0)
        self.assertEqual(self.kept(), [1, 3, 4, 5])

    def test_half_an_entry_does_not_count(self):
        self.edge().add("a", lines(1), 9, NOON)
        with (self.directory / f"{DAY}.batches").open("ab") as file:
            file.write(b'{"batch":"b","at":1,"e')
        self.assertEqual(self.edge().add("b", lines(2), 9, NOON), 0)
        self.assertEqual(self.edge().add("b", lines(2), 9, NOON), 1)
        self.assertEqual(self.kept(), [1, 2])

    def test_a_failure_leaves_nothing_of_a_batch(self):
        edge = self.edge()
        edge.add("a", lines(1), 9, NOON)
        batches = self.directory / f"{DAY}.batches"
        text = batches.read_bytes()
        batches.unlink()
        batches.mkdir()
        with self.assertRaises(OSError):
            edge.add("b", lines(2), 9, NOON)
        batches.rmdir()
        batches.write_bytes(text)
        self.assertEqual(edge.add("b", lines(2), 9, NOON), 0)
        self.assertEqual(self.kept(), [1, 2])

    def test_a_clock_that_goes_back_does_not_begin_a_former_day(self):
        edge = self.edge()
        edge.add("a", lines(1), 9, NOON)
        edge.add("b", lines(2), 9, NOON - 86_400)
        self.assertEqual(self.kept(), [1, 2])

    def test_only_so_many_batches_are_remembered(self):
        edge = self.edge()
        for number in range(sink.REMEMBERED + 10):
            edge.add(f"b{number}", lines(number), 9, NOON)
        self.assertEqual(len(edge.batches), sink.REMEMBERED)
        self.assertEqual(self.edge().add(f"b{sink.REMEMBERED}", lines(0), 9, NOON), 1)


class Requests(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.tokens = Path(place.name) / "tokens"
        self.tokens.write_text(f"# edges\n{NODE} {hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
        self.sink = sink.Sink(Path(place.name) / "lines", self.tokens, least_free=0, keep_days=400)

    def send(self, body: bytes = body(1), encoding: str = "gzip", **more: str) -> int:
        headers = {
            "x-hookyard-node": NODE, "x-hookyard-batch": "id-1-0-9", "content-encoding": encoding,
            "authorization": f"Bearer {TOKEN}",
        } | {name.replace("_", "-"): value for name, value in more.items()}
        try:
            return 208 if self.sink.take(headers, body) else 200
        except sink.Refused as refused:
            return refused.status

    def test_who_may_send_what(self):
        for expected, more in (
            (200, {}),
            (208, {}),
            (401, {"authorization": "Bearer another"}),
            (401, {"authorization": "Bearer "}),
            (401, {"authorization": ""}),
            (401, {"x_hookyard_node": "edge-8"}),
            (400, {"x_hookyard_node": "../edge-7"}),
            (400, {"x_hookyard_node": ".."}),
            (400, {"x_hookyard_node": ""}),
            (400, {"x_hookyard_batch": "a/b"}),
            (400, {"x_hookyard_batch": ""}),
            (400, {"body": b"not gzip"}),
            (400, {"body": body(1)[:-4]}),
            (400, {"body": body(1) + b"x"}),
            (400, {"body": b'{"node":"edge-7"}', "encoding": "identity"}),
            (413, {"body": gzip.compress(bytes(sink.MOST_LINES + 1))}),
        ):
            with self.subTest(**more):
                self.assertEqual(self.send(**more), expected)

    def test_a_new_token_counts_at_once(self):
        self.tokens.write_text(f"{NODE} {hashlib.sha256(b'another').hexdigest()}\n")
        self.assertEqual((self.send(), self.send(authorization="Bearer another")), (401, 200))

    def test_lines_that_are_none_are_kept_as_unreadable(self):
        other_encoding = json.dumps({"node": NODE}).encode("utf-16-le")
        odd = b"\n".join([b"no json", b"[1]", b'{"node":"edge-8"}', b"[" * 100_000, other_encoding, lines(1)[0]])
        self.assertEqual(self.send(gzip.compress(odd)), 200)
        [file] = self.sink.store.glob("*/*.ndjson")
        kept = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual([line["node"] for line in kept], [NODE] * 6)
        unreadable = [line.get("unreadable", "")[:5] for line in kept]
        self.assertEqual(unreadable, ["no js", "[1]", '{"nod', "[[[[[", "{\0\"\0n", ""])

    def test_a_full_disk_takes_nothing(self):
        self.sink.least_free = 1 << 62
        self.assertEqual(self.send(), 503)

    def test_days_that_are_over_for_long_are_removed(self):
        self.send()
        [file] = self.sink.store.glob("*/*.ndjson")
        old = file.with_name("2020-01-01.ndjson")
        old.write_bytes(b"")
        self.sink.forget()
        self.assertEqual((old.exists(), file.exists()), (False, True))


class Rows(unittest.TestCase):
    """What load.py makes of the files."""

    def test_a_part_begins_where_the_last_one_ended(self):
        with tempfile.TemporaryDirectory() as place:
            edge = sink.Edge(Path(place) / NODE)
            edge.add("a", lines(1, 2), 9, NOON)
            batches = Path(place) / NODE / f"{DAY}.batches"
            [(begin, end, rows)] = load.parts(batches, 0)
            self.assertEqual((begin, end, rows.count(b"\n")), (0, sum(map(len, lines(1, 2))), 2))
            self.assertEqual(list(load.parts(batches, end)), [])
            edge.add("b", lines(3), 9, NOON)
            self.assertEqual([part[:2] for part in load.parts(batches, end)], [(end, end + len(lines(3)[0]))])

    def test_a_row_is_one_line_of_five_columns(self):
        for line, kind, at in (
            (b'{"at":"2026-01-31T09:30:00.125Z","verdict":"block"}', "outcome", "2026-01-31T09:30:00.125000+00:00"),
            (b'{"at":"2026-01-31T09:30:00.125Z","state":{}}', "state", "2026-01-31T09:30:00.125000+00:00"),
            (b'{"at":"tomorrow",\r\t"denied":"a\\nb\\t\\\\."}', "denied", "2026-01-31T12:00:00+00:00"),
            (b'{"at":7}', "outcome", "2026-01-31T12:00:00+00:00"),
            (b"[" * 100_000, "unreadable", "2026-01-31T12:00:00+00:00"),
        ):
            columns = load.row(NODE, line + b"\n", NOON)[:-1].split(b"\t")
            self.assertEqual((len(columns), columns[1].decode(), columns[3].decode()), (5, at, kind))
            self.assertEqual(re.sub(rb"\\(.)", unescaped, columns[4]), line)


def unescaped(found: re.Match[bytes]) -> bytes:
    """As COPY reads it."""
    return {b"r": b"\r", b"t": b"\t"}.get(found[1], found[1])


if __name__ == "__main__":
    unittest.main()
