"""Witnesses and the keeper of a log: who signs what, what is published when, and every lie that they see."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from hubbub import transparency as tlog
from hubbub_aggregator.stores import TransparencyLog
from hubbub_client import TransportError
from hubbub_client.upload import Response
from hubbub_deploy.transparency import LogKeeper, LogSettings, LogWitness

PRIVATE = [Ed25519PrivateKey.from_private_bytes(bytes([place]) * 32) for place in range(1, 6)]
KEY = tlog.NoteKey("log.example", tlog.LOG_KEY, PRIVATE[0].public_key().public_bytes_raw())
WITNESSES = tuple(
    tlog.NoteKey(f"w{place}.example", tlog.WITNESS_KEY, PRIVATE[place].public_key().public_bytes_raw())
    for place in (1, 2, 3)
)
POLICY = tlog.LogPolicy(KEY, WITNESSES, 2)
NOW_S = 1_764_104_400


def entry(place: int, about: int = 0) -> tlog.Entry:
    return tlog.Entry("release", (place.to_bytes(16, "big"), 1, bytes([about]) * 32))


class Way:
    """A way to a witness in this process, which may be broken."""

    def __init__(self, witness: LogWitness) -> None:
        self.witness, self.broken = witness, False

    def post(self, path: str, body: bytes) -> Response:
        assert path == "/add-checkpoint"
        if self.broken:
            raise TransportError("cannot be reached")
        judged = self.witness.add(body)
        return Response(judged.status, judged.text.encode())

    def get(self, path: str) -> Response:
        raise AssertionError(path)

    def close(self) -> None:
        pass


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[list[Way]]:
    with contextlib.ExitStack() as stack:
        made = []
        for key, private in zip(WITNESSES, PRIVATE[1:], strict=False):
            witness = LogWitness(tmp_path / f"{key.name}.db", key, private, [KEY], clock=lambda: NOW_S)
            made.append(Way(stack.enter_context(contextlib.closing(witness))))
        yield made


class Side:
    """A log with its keeper; several of one key are the views of an operator who lies."""

    def __init__(self, path: Path, ways: list[Way], clock: Callable[[], float]) -> None:
        self.log = TransparencyLog(path)
        settings = LogSettings(KEY, PRIVATE[0], {key: str(place) for place, key in enumerate(WITNESSES)}, 2)
        self.keeper = LogKeeper(self.log, settings, clock=clock, connect=lambda url: ways[int(url)])

    def seen(self) -> tuple[int, int]:
        """Size and number of witnesses of what is published; none is (0, 0)."""
        note = self.log.published()
        if note is None:
            return 0, 0
        opened = POLICY.opened(note.encode())
        return opened.checkpoint.size, len(opened.seen)


@pytest.fixture
def side(tmp_path: Path, ways: list[Way]) -> Iterator[Callable[[str], Side]]:
    # A keeper tries again after some seconds: every look is an hour after the one before.
    ticks = itertools.count(NOW_S, 3_600)
    sides = []

    def made(name: str) -> Side:
        sides.append(Side(tmp_path / f"{name}.sqlite", ways, lambda: next(ticks)))
        return sides[-1]

    yield made
    for each in sides:
        each.log.close()


def test_what_grew_is_seen_by_all_and_published(side: Callable[[str], Side]) -> None:
    one = side("one")
    for size in (1, 2, 7, 300):
        one.log.append(map(entry, range(size)))
        one.keeper.look()
        assert one.seen() == (size, 3)


def test_nothing_is_published_without_a_quorum_and_all_is_made_up_for(
    side: Callable[[str], Side], ways: list[Way]
) -> None:
    one = side("one")
    one.log.append([entry(0)])
    one.keeper.look()
    ways[0].broken = ways[1].broken = True
    one.log.append([entry(1)])
    one.keeper.look()
    assert one.seen() == (1, 3)
    ways[0].broken = False
    one.keeper.look()
    assert one.seen() == (2, 2)
    ways[1].broken = False
    one.keeper.look()
    assert one.seen() == (2, 3)


def test_a_keeper_begins_again_where_witnesses_are(side: Callable[[str], Side], tmp_path: Path) -> None:
    one = side("one")
    one.log.append(map(entry, range(5)))
    one.keeper.look()
    again = side("one")  # knows no sizes: each witness says its own
    again.log.append(map(entry, range(9)))
    again.keeper.look()
    assert again.seen() == (9, 3)


@pytest.mark.parametrize(
    ("lie", "entries"),
    [
        ("a rewritten release", [entry(0), entry(1, 9), entry(2), entry(3)]),
        ("a survey put in between", [entry(0), entry(8), entry(1), entry(2), entry(3)]),
        ("another log under the origin", [entry(7)]),
        ("another log of the same size", [entry(5), entry(6), entry(7)]),
        ("a log that was rolled back", [entry(0), entry(1)]),
        ("an entry left out", [entry(0), entry(2), entry(3), entry(4)]),
    ],
)
def test_a_lie_gets_no_cosignature(side: Callable[[str], Side], lie: str, entries: list[tlog.Entry]) -> None:
    honest = side("honest")
    honest.log.append(map(entry, range(3)))
    honest.keeper.look()
    lying = side("lying")
    lying.log.append(entries)
    for _ in range(3):
        lying.keeper.look()
    assert lying.seen() == (0, 0), lie
    honest.log.append([entry(3)])
    honest.keeper.look()
    assert honest.seen() == (4, 3)


@pytest.mark.parametrize("shared", [*itertools.product((0, 1), repeat=3)])
def test_of_two_views_that_share_three_witnesses_one_is_published(
    side: Callable[[str], Side], ways: list[Way], shared: tuple[int, ...]
) -> None:
    """Two lists of one number, each shown first to those witnesses that the operator chooses."""
    sides = [side("one"), side("two")]
    for place, each in enumerate(sides):
        each.log.append([entry(0), tlog.Entry("list", (1, bytes([place]) * 32, 1, 2))])
        for way, whose in zip(ways, shared, strict=True):
            way.broken = whose != place
        each.keeper.look()
    for way in ways:
        way.broken = False
    for each in sides * 2:
        each.keeper.look()
    published = [each.seen() for each in sides]
    assert sorted(published) in ([(0, 0), (2, 2)], [(0, 0), (2, 3)])


def request(old: int, checkpoint: tlog.Checkpoint, *, by: int = 0, path: str = "") -> bytes:
    signed = f"{checkpoint.text}\n{KEY.sign(checkpoint.text, PRIVATE[by])}"
    return f"old {old}\n{path}\n{signed}".encode()


ONE = tlog.Checkpoint(KEY.name, 1, tlog.leaf_hash(b"x"))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"old 0\n\n", 400),
        (b"old 00\n" + request(0, ONE)[6:], 400),
        (request(0, ONE).replace(b"old", b"new"), 400),
        (request(0, ONE, path="AAAA\n"), 400),
        (request(2, ONE), 400),
        (request(0, tlog.Checkpoint("other.example", 1, ONE.root)), 404),
        (request(0, ONE, by=4), 403),
        (request(1, ONE), 409),
        (request(0, ONE, path=tlog.path_text([bytes(32)])), 422),
        (request(0, ONE), 200),
    ],
)
def test_a_witness_answers_by_the_statuses_of_its_format(ways: list[Way], body: bytes, status: int) -> None:
    judged = ways[0].witness.add(body)
    assert judged.status == status
    if status == 409:
        assert judged == (409, "0\n", "text/x.tlog.size")
        ways[0].witness.add(request(0, ONE))
        other = tlog.Checkpoint(KEY.name, 1, tlog.leaf_hash(b"y"))
        assert ways[0].witness.add(request(1, other)) == (409, "1\n", "text/x.tlog.size")


@given(st.binary(max_size=300))
def test_any_request_is_answered(data: bytes) -> None:
    with contextlib.closing(LogWitness(Path(":memory:"), WITNESSES[0], PRIVATE[1], [KEY])) as witness:
        assert witness.add(data).status == 400
