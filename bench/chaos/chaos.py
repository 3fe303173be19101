"""Truth against counts while everything is killed: real Kafka, real Redis, every counter compared.

    python bench/chaos/chaos.py                                  every scenario, 5,000,000 reports each
    python bench/chaos/chaos.py --reports 500000 workers redis   some of them, smaller
    python bench/chaos/chaos.py --id-table numpy storm
    python bench/chaos/chaos.py --sabotage calm                  one batch doubled after the truth: must exit
    with 1

Two surveys of four rounds; each round is sealed and released while the next one is sent. A tenth of the
reports comes twice (over HTTP: thrice in `thrice`, else as often as devices repeat them), and a fiftieth each
is invalid, early and late besides. It exits with 1 where any number differs.

What is compared:

- per survey, round, partition and symbol, what was counted when the round was released, with the seed;
- per survey, round and partition, the seven tallies and the seal's offset, with a second reading of the log;
- at every cut that the dashboard published, all nine totals with the log up to that cut, and the identity;
- at the end, the same in Redis, partition by partition;
- every version of every release that the archive was seen to hold: one each, and its bytes those that the
  truth gives.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from chaos_faults import (
    OnCluster,
    SlowArchiveWorld,
    SlowRedis,
    SmallDisk,
    ThroughProxies,
    cut_both,
    cut_log,
    fill_archive,
    half_cut_log,
    half_cut_redis,
    pause_broker,
    pause_worker,
    reshard,
)
from chaos_truth import (
    EARLY,
    INVALID,
    LATE,
    PARTITIONS,
    ROUNDS,
    STAGES,
    SURVEYS,
    VALID,
    VERDICTS,
    Audit,
    Crowd,
    clock_in,
)
from chaos_world import KEYS, Channel, World, number_of, version_name
from numpy.typing import NDArray

from hubbub.wire.record import ReportsRecord, Segment, encode_record
from hubbub.wire.report import Report, encode_report, encode_upload
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release.enrolment import FleetStatement
from hubbub_aggregator.release.provisional import AcceptedCounts
from hubbub_aggregator.release.round_release import Release, canonical_bytes
from hubbub_aggregator.web.view import total_of

# As many as a gateway takes in one upload.
UPLOAD_REPORTS = 1_700
APPEND_RECORDS = 8
DEVICES = 6
Event = tuple[float, Callable[[World], None]]


@dataclass(frozen=True)
class Scenario:
    """A course of events with their times: 1.5 is the middle of the second of four rounds.

    Attributes:
        says: What it is, for the table.
        events: In their order.
        workers: How many at the start.
        nodes: Of the broker.
        over_http: The share of reports that collectors take from devices.
        passes: How often devices send each.
        world: What surrounds the parts.
    """

    says: str
    events: tuple[Event, ...] = ()
    workers: int = 2
    nodes: int = 1
    over_http: float = 0.0
    passes: int = 1
    world: type[World] = World


KILLS = tuple((at, World.kill_worker) for at in (0.3, 0.8, 1.5, 2.3, 3.4))
REDIS = ((1.3, World.dump_redis), (3.5, World.age_redis))
BROKER = ((1.6, World.restart_broker),)


def storm(world: World) -> None:
    """Start one worker, and let one leave two seconds after it has joined."""
    world.add_worker()
    world.wait_joined()
    world.happened["worker joined"] += 1
    time.sleep(2)
    world.dismiss_worker()
    time.sleep(1)


STORM = tuple((at / 2 + 0.2, storm) for at in range(8))
NODES = tuple(
    (at, lambda world, number=number: world.restart_node(number))
    for number, at in ((1, 0.4), (2, 1.4), (3, 2.4))
)

SCENARIOS = {
    "calm": Scenario("two workers, nothing is killed"),
    "workers": Scenario("two workers, five kill -9", KILLS),
    "broker": Scenario("the broker is killed and starts again", BROKER),
    "redis": Scenario("Redis is killed and comes back with an older dump", REDIS),
    "redis-empty": Scenario("Redis is killed and comes back empty", REDIS[1:]),
    "collectors": Scenario("collectors killed between accept and acknowledge", over_http=1.0),
    "thrice": Scenario("every upload three times, other orders, two collectors", over_http=1.0, passes=3),
    "storm": Scenario("workers join and leave", STORM),
    "all": Scenario(
        "all at once", tuple(sorted((*KILLS, *REDIS, *BROKER, *STORM), key=lambda one: one[0])), over_http=0.1
    ),
    "worker-paused": Scenario("a worker stops for 15 s, and goes on", ((1.4, pause_worker),)),
    "broker-paused": Scenario("the broker stops for 15 s, and goes on", ((1.5, pause_broker),)),
    "log-cut": Scenario("15 s of no way to the broker", ((1.5, cut_log),), world=ThroughProxies),
    "log-half-cut": Scenario(
        "15 s without the broker's answers", ((1.5, half_cut_log),), world=ThroughProxies
    ),
    "seal-cut": Scenario(
        "15 s of no way to the broker as a round's seals are due", ((2.0, cut_log),), world=ThroughProxies
    ),
    "seal-half-cut": Scenario(
        "15 s without the broker's answers as a round's seals are due",
        ((2.0, half_cut_log),),
        world=ThroughProxies,
    ),
    "cut": Scenario("15 s of no way to broker and Redis", ((1.5, cut_both),), world=ThroughProxies),
    "redis-half-cut": Scenario("15 s without Redis' answers", ((1.5, half_cut_redis),), world=ThroughProxies),
    "redis-slow-disk": Scenario("every fsync of Redis takes 0.2 s longer", world=SlowRedis),
    "archive-slow": Scenario("every release takes 1 s to be written", world=SlowArchiveWorld),
    "archive-full": Scenario(
        "the archive's disk is full for a while", ((2.2, fill_archive),), world=SmallDisk
    ),
    "resharded": Scenario(
        "Redis Cluster; all slots move, twice", ((1.5, reshard), (3.2, reshard)), world=OnCluster
    ),
    "nodes": Scenario("three nodes, three copies, each node killed once", NODES, nodes=3),
}


def bodies(crowd: Crowd, numbers: NDArray[np.int64]) -> list[bytes]:
    """Return the uploads of these reports, by docs/wire.md; the first is compared with the encoder's."""
    digests = np.array([np.frombuffer(survey.digest, np.uint8) for survey in SURVEYS])
    table = np.empty((len(numbers), 37), np.uint8)
    table[:, :3] = 0x93, 0xC4, 0x20
    table[:, 3:19] = digests[crowd.survey[numbers]]
    table[:, 19:35] = crowd.ids[numbers]
    table[:, 35], table[:, 36] = crowd.round[numbers], crowd.symbol[numbers]
    parts = np.array_split(np.arange(len(numbers)), -(-len(numbers) // UPLOAD_REPORTS))
    found = [b"\x92\x01\xdc" + len(part).to_bytes(2, "big") + table[part].tobytes() for part in parts]
    first = numbers[parts[0]]
    reports = [
        Report(SURVEYS[s].digest, int(r), i.tobytes(), int(y))
        for s, r, i, y in zip(
            crowd.survey[first], crowd.round[first], crowd.ids[first], crowd.symbol[first], strict=True
        )
    ]
    if len(first) > 15 and found[0] != encode_upload([encode_report(report) for report in reports]):
        raise AssertionError("the columns are not what the encoder writes")
    return found


def run(name: str, reports: int, *, sabotage: bool, options: Mapping[str, str]) -> dict[str, object]:
    """Run one scenario, from an empty cluster to the comparison."""
    scenario = SCENARIOS[name]
    began = time.monotonic()
    crowd = Crowd(reports, seed=5, over_http=scenario.over_http)
    folder = Path(tempfile.mkdtemp(prefix="chaos."))
    try:
        with scenario.world(folder, nodes=scenario.nodes, options=options) as world:
            sent = play(scenario, crowd, world, sabotage=sabotage)
            compared, faults = compare(scenario, crowd, world, sent)
            offsets = sum(world.log.end(partition) for partition in range(PARTITIONS))
            said = world.said()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    total = dict(zip(VERDICTS, compared.pop("total"), strict=True))
    return {
        "scenario": f"{name}: {scenario.says}",
        "reports": reports,
        "over HTTP": int(np.count_nonzero(crowd.over_http & (crowd.kind == VALID))) * scenario.passes,
        "records": offsets,
        "happened": dict(world.happened),
        "repeated after an error": world.failed,
        **total,
        **compared,
        "seconds": round(time.monotonic() - began),
        "said": said,
        "differences": faults,
    }


def play(  # noqa: PLR0912 - two ways into the log, stage after stage
    scenario: Scenario, crowd: Crowd, world: World, *, sabotage: bool
) -> dict[str, int]:
    """Send everything, cause the scenario's events, wait until all is released, and return what was sent."""
    sent = dict.fromkeys(VERDICTS, 0)
    for _ in range(scenario.workers):
        world.add_worker()
    direct = Channel([world.appender() for _ in range(2)] if scenario.over_http < 1 else [])
    devices = Channel([])
    if scenario.over_http:
        expected = int(crowd.over_http.sum()) * scenario.passes // UPLOAD_REPORTS
        deaths = max(2, expected // 40)
        world.kill_collectors_after(
            [deaths, deaths + 1, deaths + 2, deaths + 3, deaths + 4] if scenario.passes == 1 else []
        )
        ports = [world.add_collector() for _ in range(2)]
        # An upload that nobody heard would make the comparison allow for repeats.
        world.wait_for(lambda: all(map(world.listens, ports)), "collectors")
        devices = Channel([world.uploader(ports, seed) for seed in range(DEVICES)])
    channels = (direct, devices)
    progress = time.monotonic()
    for stage in range(STAGES):
        if scenario.over_http < 1:
            made, amount = crowd.records(stage, again=0.1)
            for what, count in amount.items():
                sent[what] += count
            if sabotage and stage == 1:
                made.append(doubled(crowd))
            direct.load([made[at : at + APPEND_RECORDS] for at in range(0, len(made), APPEND_RECORDS)])
        if scenario.over_http:
            passes = [bodies(crowd, crowd.sent_in(stage, over_http=True)) for _ in range(scenario.passes)]
            devices.load([body for once in passes for body in once])
        for at, event in scenario.events:
            if int(at) == stage:
                for channel in channels:
                    channel.allow(at % 1)
                world.wait_for(lambda at=at: all(one.has_done(at % 1) for one in channels), "sending")
                # There is more to count while it happens.
                following = min(
                    (one for one, _ in scenario.events if at < one < stage + 1), default=stage + 1
                )
                for channel in channels:
                    channel.allow(following - stage)
                event(world)
        for channel in channels:
            channel.allow(1.0)
        world.wait_for(lambda: all(channel.has_done(1.0) for channel in channels), "sending")
        if 1 <= stage <= ROUNDS:
            world.wait_for(
                lambda stage=stage: world.has_released(stage - 1), f"the release of round {stage - 1}"
            )
        if stage < STAGES - 1:
            world.set_clock(clock_in(stage + 1))
        print(f"  stage {stage}: {time.monotonic() - progress:.0f} s", file=sys.stderr, flush=True)
    world.wait_for(lambda: not world.lag(), "the last record")
    # The dashboard's last view is everything.
    ends = tuple(world.log.end(partition) for partition in range(PARTITIONS))
    world.wait_for(lambda: bool(world.view.cuts) and world.view.cuts[-1][0] == ends, "the last cut")
    world.look()
    for channel in channels:
        channel.stop()
    return sent


def doubled(crowd: Crowd) -> tuple[int, bytes]:
    """Return a batch of the first round again, under fresh ids of a gateway: it is not in the truth."""
    ids = np.random.default_rng(0).integers(0, 256, (1_000, 16), dtype=np.uint8)
    ids[:, 15] &= 0xFC  # partition 0 of four
    mine = np.flatnonzero((crowd.kind == VALID) & (crowd.survey == 0) & (crowd.round == 1))[:1_000]
    segment = Segment(SURVEYS[0].digest, 1, ids[: len(mine)].tobytes(), crowd.symbol[mine], len(mine))
    return 0, encode_record(ReportsRecord(int(clock_in(1) // 60), (segment,)))


def compare(
    scenario: Scenario, crowd: Crowd, world: World, sent: dict[str, int]
) -> tuple[dict[str, object], list[str]]:
    """Compare every counter with the truth: how many were compared, and what differs."""
    audit = Audit(crowd, world.log)
    faults = [*world.faults, *audit.faults]
    checks = 0

    def same(what: str, found: object, expected: object) -> None:
        nonlocal checks
        checks += np.size(found)
        if not np.array_equal(found, expected):
            faults.append(f"{what}: {found} is not {expected}")

    same_sent(scenario, crowd, world, sent, audit, same)
    for key, partition, counts, tally, sealed_at in world.released:
        mine = (number_of(key[0]), key[1])
        read = audit.partitions[partition].rounds[mine]
        what = f"survey {mine[0]}, round {mine[1]}, partition {partition}"
        same(f"{what}, counts", counts, crowd.counts(mine, partition))
        same(f"{what}, tallies", tuple(tally), tuple(read.tally.tolist()))
        same(f"{what}, seal", sealed_at, read.sealed_at)
    if len({released[:2] for released in world.released}) != len(KEYS) * PARTITIONS:
        faults.append("not every round was seen when it was released")
    for offsets, total in world.view.cuts:
        same(f"the cut {offsets}", total, audit.total(offsets))
        same(f"the identity at {offsets}", total[0], sum(total[1:7]))
    same(
        "the identity of rounds shown",
        [tally.holds for tally in world.view.tallies],
        [True] * len(world.view.tallies),
    )
    store = world.connect()
    states = {partition: store.load(partition) for partition in range(PARTITIONS)}
    store.close()
    for partition, state in states.items():
        read_all = audit.partitions[partition]
        same(f"partition {partition}, offset", state.offset, len(read_all.until) - 1)
        found = (*total_of([state]), state.unknown, state.dead)
        same(f"partition {partition}, totals in Redis", found, tuple(read_all.until[-1].tolist()))
        for number, mine_read in read_all.rounds.items():
            if number in KEYS:
                known = state.rounds[SURVEYS[number[0]].digest, number[1]]
                if not known.is_archived:
                    expected = (tuple(mine_read.tally.tolist()), tuple(mine_read.after_seal.tolist()))
                    what = f"survey {number[0]}, round {number[1]}, partition {partition} in Redis"
                    same(f"{what}, tallies", (tuple(known.verdicts), tuple(known.after_seal)), expected)
                    same(f"{what}, counts", known.counts, mine_read.counts)
                same(f"partition {partition}, seal in Redis", known.sealed_at, mine_read.sealed_at)
    compare_releases(crowd, world, audit, same)
    offsets = tuple(len(part.until) - 1 for part in audit.partitions)
    return {
        "total": audit.total(offsets),
        "comparisons": checks,
        "cuts": len(world.view.cuts),
        "releases": len(world.versions),
        "versions of a release": max(len(versions) for versions in world.versions.values()),
        "names of the releases": sorted(
            version_name(data) for one in world.versions.values() for data in one
        ),
    }, faults


def same_sent(  # noqa: PLR0917 - what `compare` has
    scenario: Scenario,
    crowd: Crowd,
    world: World,
    sent: dict[str, int],
    audit: Audit,
    same: Callable[[str, object, object], None],
) -> None:
    """Compare what the log holds with what was sent: the same, or more where uploads were repeated."""
    total = dict(
        zip(VERDICTS, audit.total(tuple(len(part.until) - 1 for part in audit.partitions)), strict=True)
    )
    same("accepted", total["accepted"], crowd.reports)
    http = {
        kind: int(np.count_nonzero(crowd.over_http & (crowd.kind == kind))) * scenario.passes
        for kind in (VALID, INVALID, EARLY, LATE)
    }
    if scenario.over_http:
        told = {"accepted": http[VALID], "invalid": http[INVALID], "early": http[EARLY], "late": http[LATE]}
        same("what devices were told", dict(world.told) == {word: n for word, n in told.items() if n}, True)
        direct_valid = crowd.reports - http[VALID] // scenario.passes
        sent = dict(sent) | {
            "accepted": crowd.reports,
            "duplicate": sent["duplicate"] + http[VALID] - http[VALID] // scenario.passes,
            "attempts": sent["attempts"] + sum(http.values()),
            "invalid": sent["invalid"] + http[INVALID],
            "early": sent["early"] + http[EARLY],
            "late": sent["late"] + http[LATE],
        }
        same("reports by either way", direct_valid + http[VALID] // scenario.passes, crowd.reports)
    is_repeated = world.failed or any(
        count for what, count in world.happened.items() if what.startswith("uploads")
    )
    for verdict in VERDICTS:
        if is_repeated:
            same(f"at least what was sent, {verdict}", total[verdict] >= sent[verdict], True)
        else:
            same(f"what was sent, {verdict}", total[verdict], sent[verdict])


def compare_releases(
    crowd: Crowd, world: World, audit: Audit, same: Callable[[str, object, object], None]
) -> None:
    """Compare each release's bytes with those that the truth gives; there was never another version."""
    most = [0] * len(SURVEYS)
    for key in KEYS:
        survey = SURVEYS[key[0]]
        reads = [part.rounds[key] for part in audit.partitions]
        counts = sum(crowd.counts(key, partition) for partition in range(PARTITIONS))
        tally = VerdictCounts(*sum(read.tally for read in reads).tolist())  # type: ignore[union-attr]  # an array
        n = int(np.sum(counts))
        most[key[0]] = max(most[key[0]], n)
        cut = {partition: read.sealed_at for partition, read in enumerate(reads)}
        enrolment = FleetStatement().of(survey, counted=n, enrolled=most[key[0]])
        expected = Release(survey, key[1], "sealed", AcceptedCounts(cut, counts, n), tally, [], enrolment)  # type: ignore[arg-type]  # sealed
        versions = world.versions.get((survey.digest, key[1]), set())
        same(f"survey {key[0]}, round {key[1]}, versions", len(versions), 1)
        same(
            f"survey {key[0]}, round {key[1]}, bytes",
            versions == {canonical_bytes(expected.document())},
            True,
        )


def main() -> int:
    """Run scenarios, print what each found, and return 1 where anything differs."""
    parser = argparse.ArgumentParser(description="Truth against counts while everything is killed.")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--reports", type=int, default=5_000_000)
    parser.add_argument("--sabotage", action="store_true", help="double a batch after the truth is known")
    parser.add_argument("--id-table", choices=("auto", "numpy", "compiled"), default="auto")
    options = parser.parse_args()
    if strange := set(options.scenarios) - set(SCENARIOS):
        parser.error(f"scenarios must be among {', '.join(SCENARIOS)}, got {', '.join(sorted(strange))}")
    differs = False
    for name in options.scenarios or SCENARIOS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        cluster = {"id_table": options.id_table}
        found = run(name, options.reports, sabotage=options.sabotage, options=cluster)
        faults = found.pop("differences")
        differs |= bool(faults)
        for line in found.pop("said"):  # type: ignore[attr-defined]  # a list of lines
            print(f"{'said':>24}  {line}")
        for what, value in found.items():
            print(f"{what:>24}  {value:,}" if isinstance(value, int) else f"{what:>24}  {value}")
        print(
            f"{'differences':>24}  {len(faults)}",
            *(f"    {fault}" for fault in faults[:20]),
            sep="\n",
            flush=True,
        )
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
