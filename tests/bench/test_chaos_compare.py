"""The comparison of truth and counts: silent about a world that is right, loud about each thing that is not.

`bench/chaos/chaos.py` rests on it. Here its world is one process on SQLite, counted by the same code; then
one
number at a time is made wrong.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

BENCH = Path(__file__).parents[2] / "bench" / "chaos"
sys.path.insert(0, str(BENCH))
import chaos  # noqa: E402 - found by the line above
from chaos_truth import PARTITIONS, STAGES, SURVEYS, VERDICTS, Crowd, clock_in  # noqa: E402 - as above
from chaos_world import KEYS, SeenView  # noqa: E402 - as above

from hubbub.wire.record import SurveyRecord, encode_record  # noqa: E402 - as above
from hubbub_aggregator.counting.counting import RoundKey  # noqa: E402 - as above
from hubbub_aggregator.release.round_release import canonical_bytes  # noqa: E402 - as above
from hubbub_aggregator.runners.publisher import Worker  # noqa: E402 - as above
from hubbub_aggregator.stores.archive import SqliteArchive  # noqa: E402 - as above
from hubbub_aggregator.stores.sqlite_store import SqliteStore  # noqa: E402 - as above
from hubbub_topic.sqlite import SqliteLog  # noqa: E402 - as above

REPORTS = 6_000
CALM = chaos.SCENARIOS["calm"]


class SeeingArchive(SqliteArchive):
    """Notes what each partition held when a round was released, as the dashboard under test does."""

    def __init__(self, path: Path, store: SqliteStore) -> None:
        super().__init__(path)
        self._counts = store
        self.released: list[Any] = []

    def put(self, key: RoundKey, data: bytes) -> None:
        super().put(key, data)
        for partition in range(PARTITIONS):
            known = self._counts.load(partition).rounds[key]
            self.released.append((key, partition, known.counts, known.verdicts, known.sealed_at))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crowd, Any, dict[str, int]]]:
    """A crowd, the world that has counted it, and what was sent."""
    folder = tmp_path_factory.mktemp("world")
    crowd, sent = Crowd(REPORTS, seed=5, over_http=0.0), dict.fromkeys(VERDICTS, 0)
    now, view = [clock_in(0)], SeenView()
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(SqliteLog(folder / "log", partitions=PARTITIONS))
        store = SqliteStore(folder / "store", log_identity=log.identity, partitions=PARTITIONS)
        stack.callback(store.close)
        archive = SeeingArchive(folder / "archive", store)
        stack.callback(archive.close)
        for survey in SURVEYS:
            log.publish_survey(survey.digest, encode_record(SurveyRecord(survey.canonical)))
        worker = Worker(
            log, store, archive=archive, view=view, grace_s=30.0, clock=lambda: now[0], read_records=1
        )
        for stage in range(STAGES):
            now[0] = clock_in(stage)
            made, amount = crowd.records(stage, again=0.1)
            for what, count in amount.items():
                sent[what] += count
            for partition, record in made:
                log.append({partition: [record]})
            while worker.step() or worker.step():
                pass
        found = {key: archive.get(key) for key in archive.rounds()}
        yield (
            crowd,
            SimpleNamespace(
                log=log,
                view=view,
                released=archive.released,
                versions={key: {data} for key, data in found.items()},
                states={partition: store.load(partition) for partition in range(PARTITIONS)},
                happened=Counter(),
                told=Counter(),
                faults=[],
                failed=0,
            ),
            sent,
        )


@pytest.fixture
def world(played: tuple[Crowd, Any, dict[str, int]]) -> Any:
    """A copy of the world, as deep as the tests reach."""
    crowd, right, sent = played
    states = {
        partition: replace(state, rounds={key: replace(known) for key, known in state.rounds.items()})
        for partition, state in right.states.items()
    }
    store = SimpleNamespace(load=states.__getitem__, close=lambda: None)
    return SimpleNamespace(
        **vars(right)
        | {
            "crowd": crowd,
            "sent": dict(sent),
            "view": SimpleNamespace(cuts=list(right.view.cuts), tallies=list(right.view.tallies)),
            "released": [(key, at, counts.copy(), *rest) for key, at, counts, *rest in right.released],
            "versions": {key: set(versions) for key, versions in right.versions.items()},
            "states": states,
            "faults": [],
            "connect": lambda: store,
        }
    )


def faults(world: Any) -> list[str]:
    _, found = chaos.compare(CALM, world.crowd, world, world.sent)
    return found


def test_a_world_that_is_right_differs_in_nothing(world: Any) -> None:
    compared, found = chaos.compare(CALM, world.crowd, world, world.sent)
    assert found == []
    assert compared["releases"] == len(KEYS)
    assert int(str(compared["cuts"])) > 11
    # Every release: counts per symbol, tallies, seal; every cut: nine totals and the identity.
    assert int(str(compared["comparisons"])) > 8 * PARTITIONS * 10 + 10 * int(str(compared["cuts"]))


def _counts(world: Any) -> None:
    world.released[5][2][0] += 1


def _two_symbols(world: Any) -> None:
    world.released[5][2][:2] += (1, -1)


def _tally(world: Any) -> None:
    key, partition, counts, tally, sealed_at = world.released[7]
    world.released[7] = (key, partition, counts, tally._replace(late=tally.late + 1), sealed_at)


def _seal(world: Any) -> None:
    key, partition, counts, tally, sealed_at = world.released[7]
    world.released[7] = (key, partition, counts, tally, sealed_at + 1)


def _unseen(world: Any) -> None:
    world.released.pop(3)


def _cut(place: int) -> Callable[[Any], None]:
    def change(world: Any) -> None:
        offsets, total = world.view.cuts[11]
        world.view.cuts[11] = (offsets, tuple(n + (at == place) for at, n in enumerate(total)))

    return change


def _shown(world: Any) -> None:
    world.view.tallies[4] = world.view.tallies[4]._replace(attempts=world.view.tallies[4].attempts + 1)


def _round_in_store(world: Any) -> Any:
    state = world.states[2]
    key = (SURVEYS[1].digest, 2)
    return state.rounds, key, state.rounds[key]


def _stored_counts(world: Any) -> None:
    rounds, key, known = _round_in_store(world)
    rounds[key] = replace(known, counts=known.counts + np.eye(1, len(known.counts), dtype=np.int64)[0])


def _stored_tally(world: Any) -> None:
    rounds, key, known = _round_in_store(world)
    accounting = known.verdicts
    rounds[key] = replace(known, verdicts=accounting._replace(duplicate=accounting.duplicate - 1))


def _stored_afterwards(world: Any) -> None:
    rounds, key, known = _round_in_store(world)
    rounds[key] = replace(known, after_seal=known.after_seal._replace(late=known.after_seal.late + 1))


def _stored_seal(world: Any) -> None:
    rounds, key, known = _round_in_store(world)
    rounds[key] = replace(known, sealed_at=known.sealed_at - 1)


def _stored_offset(world: Any) -> None:
    world.states[1].offset -= 1


def _stored_unknown(world: Any) -> None:
    world.states[1].unknown += 1


def _second_version(world: Any) -> None:
    next(iter(world.versions.values())).add(b"{}")


def _other_bytes(world: Any) -> None:
    key, versions = next(iter(world.versions.items()))
    document = json.loads(versions.pop())
    document["values"][0]["estimate"] += 1e-9
    world.versions[key] = {canonical_bytes(document)}


def _never_released(world: Any) -> None:
    world.versions[SURVEYS[0].digest, 0] = set()


def _never_sent(world: Any) -> None:
    world.sent["over_quota"] -= 1


@pytest.mark.parametrize(
    ("sabotage", "says"),
    [
        (_counts, "counts: "),
        (_two_symbols, "counts: "),
        (_tally, "tallies: "),
        (_seal, "seal: "),
        (_unseen, "not every round was seen"),
        *((_cut(place), "the cut ") for place in range(len(VERDICTS))),
        (_cut(0), "the identity at "),
        (_shown, "the identity of rounds shown"),
        (_stored_counts, "in Redis, counts"),
        (_stored_tally, "in Redis, tallies"),
        (_stored_afterwards, "in Redis, tallies"),
        (_stored_seal, "seal in Redis"),
        (_stored_offset, "partition 1, offset"),
        (_stored_unknown, "totals in Redis"),
        (_second_version, "versions: 2 is not 1"),
        (_other_bytes, "bytes: "),
        (_never_released, "versions: 0 is not 1"),
        (_never_sent, "what was sent, over_quota"),
    ],
    ids=lambda one: one.__name__.strip("_") if callable(one) else "",
)
def test_one_wrong_number_is_noticed(world: Any, sabotage: Callable[[Any], None], says: str) -> None:
    sabotage(world)
    assert any(says in fault for fault in faults(world))


def test_a_batch_that_nobody_sent_is_noticed(world: Any) -> None:
    """The last test here: the log stays as it is then."""
    partition, record = chaos.doubled(world.crowd)
    world.log.append({partition: [record]})
    assert any("holds reports that nobody sent" in fault for fault in faults(world))
