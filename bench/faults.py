"""A matrix of faults and parts: every cell that can occur is one command, and prints what a user saw.

    python bench/faults.py --list                the matrix: run, cannot occur (why), or open (none yet)
    python bench/faults.py killed/agent          one cell
    python bench/faults.py killed disk_full/log  a row, and a cell
    python bench/faults.py                       every cell that has a command, as a Markdown table
    python bench/faults.py --json killed/log     one line of JSON a cell
    python bench/faults.py --keep FILE           goes on where it stopped: what FILE has is not run again

Each command exits with 0 only if nothing was lost or counted twice and no release was false, as far as the
cell goes: it recounts on its own. A command that several cells name runs once. It exits with 1 if one failed,
or a cell that can occur has none. What was said is taken from the run: warnings and errors that were logged
in a test's own process, and of a chaos run why the page stood still and what workers wrote. Slow disks are
made by strace, small ones by root. FILE is of one commit: whoever changes the code begins another.

Clusters of Kafka and Redis are real; what they need stands in docs/kafka.md.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[1]
PARTS = ("agent", "collector", "log", "aggregator", "sealer", "dashboard")
FAULTS = {
    "killed": "killed with -9",
    "paused": "paused past its lease",
    "disk_full": "its disk is full",
    "disk_slow": "its disk is slow",
    "clock_ahead": "its clock is ahead",
    "clock_behind": "its clock is behind",
    "cut": "the network is cut both ways",
    "half_cut": "the network is cut one way: answers are lost",
    "broker_down": "the broker is down",
    "redis_down": "Redis is down",
    "rolled_back": "its store comes back older",
    "evicting": "Redis evicts keys",
    "resharded": "Redis is a cluster of several servers",
    "altered": "partitions are added behind its back",
    "duplicates": "everything comes again, in another order",
    "floods": "strangers and overload",
}
TIMEOUT_S = 3600
MOST_SAID = 3
_SAID = "SAID "
"""Begins the lines of a test's log, so that they are told from pytest's own."""


@dataclass(frozen=True)
class Cell:
    """One fault of one part.

    Attributes:
        says: What must hold, as a user sees it; or why it cannot occur, or what is missing.
        command: A test's node id below tests/, or a script below bench/ with its words; empty without one.
        kind: It is run, cannot occur, or is open.
    """

    says: str
    command: str = ""
    kind: Literal["run", "cannot", "open"] = "run"


def _cannot(why: str) -> Cell:
    return Cell(why, kind="cannot")


def _open(what: str) -> Cell:
    return Cell(what, kind="open")


_NO_REDIS = _cannot("it has no connection to Redis")
_NO_BROKER = _cannot("it has no connection to a broker; the collector's cell says what it hears")
_READS = _cannot("it writes nothing to a disk but releases; the sealer's cell has those")
_NODE_KILL = "integration/test_node_kill.py::"
_GATEWAY = "integration/test_gateway.py::"
_COUNTING = "integration/test_kafka_counting.py::"
_LOSSES = "integration/test_redis_losses.py::"
_REDIS = "integration/test_redis_store.py::"
_COMMANDS = "integration/test_cluster_commands.py::"
_CHAOS = "chaos/chaos.py --reports 200000 "

CELLS: dict[str, Cell] = {
    "killed/agent": Cell(
        "nothing: after the next start the same bytes are sent, and no noise is drawn twice",
        "integration/test_agent_kill.py::test_an_agent_killed_at_random_points_loses_and_repeats_nothing",
    ),
    "killed/collector": Cell(
        "a broken connection; the agent sends the same bytes again and hears accepted or duplicate",
        "integration/test_kafka_collector_kill.py::test_uploads_thrice_over_two_dying_collectors_count_once",
    ),
    "killed/log": Cell(
        "nothing that was acknowledged is gone after kill -9 of the process that appends",
        "topic/test_sqlite_log.py::test_kill_nine_loses_no_acknowledged_append_and_no_lock_stays_behind",
    ),
    "killed/aggregator": Cell(
        "the page stands still until another worker has taken over",
        _COUNTING + "test_workers_that_are_killed_count_every_report_once",
    ),
    "killed/sealer": Cell(
        "the release comes after the restart, with the same bytes",
        _NODE_KILL + "test_a_node_killed_at_random_points_counts_every_answer_once",
    ),
    "killed/dashboard": Cell(
        "a page that says since when it stands still; the one that stood by takes over",
        _COMMANDS + "test_dashboard_outlives_redis_and_another_one_stands_by",
    ),
    "paused/agent": _cannot("it holds no lease, only a lock that ends with its process"),
    "paused/collector": Cell(
        "503 for a batch that may have come after a seal; the retry hears the verdict of its own time",
        _GATEWAY + "test_a_collector_that_slept_between_judging_and_writing_does_not_answer",
    ),
    "paused/log": Cell(
        "the page stands still and says why; workers end, say so, and are started again",
        _CHAOS + "broker-paused",
    ),
    "paused/aggregator": Cell(
        "nothing: what a worker that lost its partitions writes is refused by the offset",
        _CHAOS + "worker-paused",
    ),
    "paused/sealer": Cell(
        "another seals and shows; who was paused comes back, loses the lease and stands by",
        _COMMANDS + "test_a_dashboard_paused_past_its_lease_gives_way_and_stands_by",
    ),
    "paused/dashboard": Cell(
        "another shows; the one that was paused says that another dashboard is at work",
        _COMMANDS + "test_a_dashboard_paused_past_its_lease_gives_way_and_stands_by",
    ),
    "disk_full/agent": Cell(
        "an error of the host's call; after room is made the same answers go out",
        "integration/test_agent_disk.py::test_a_full_and_then_a_read_only_disk_loses_and_repeats_nothing",
    ),
    "disk_full/collector": Cell(
        "503 and an unhealthy /healthz until the log takes uploads again",
        _GATEWAY + "test_when_the_log_fails_uploads_get_503_and_are_forgotten",
    ),
    "disk_full/log": Cell(
        "the append is refused, and what was there is kept",
        "topic/test_sqlite_log.py::test_a_full_disk_refuses_the_append_and_keeps_what_was_there",
    ),
    "disk_full/aggregator": Cell(
        "Redis without room refuses the save; the worker ends and resumes",
        _REDIS + "test_redis_without_room_refuses_a_save_and_keeps_what_it_has",
    ),
    "disk_full/sealer": Cell(
        "a node seals and releases nothing while there is no room, says so, and goes on where it stood",
        "deploy/test_node_full_disk.py",
    ),
    "disk_full/dashboard": Cell(
        "releases wait for room, one version of each",
        _CHAOS + "archive-full",
    ),
    "disk_slow/agent": Cell(
        "an answer takes as long as its fsyncs; what is sent is what is written",
        "chaos/slow_ledger.py",
    ),
    "disk_slow/collector": Cell(
        "503 with Retry-After for what waited too long; nothing acknowledged is lost",
        "integration/test_overload.py",
    ),
    "disk_slow/log": Cell(
        "503 with Retry-After for what waited too long; nothing acknowledged is lost",
        "integration/test_overload.py",
    ),
    "disk_slow/aggregator": Cell(
        "counting is slower; every counter agrees with the truth",
        _CHAOS + "redis-slow-disk",
    ),
    "disk_slow/sealer": Cell(
        "releases come later, one version of each",
        _CHAOS + "archive-slow",
    ),
    "disk_slow/dashboard": _READS,
    "clock_ahead/agent": Cell(
        "rounds that come early are refused as early; none is lost or answered twice",
        "client/agent/test_agent_policy.py::test_a_clock_that_runs_ahead_and_comes_back_loses_no_round",
    ),
    "clock_ahead/collector": Cell(
        "the counts and the release are those of a right clock",
        _NODE_KILL + "test_a_clock_that_jumps_spoils_no_count_and_no_release",
    ),
    "clock_ahead/log": _cannot("a log judges by no clock; retention goes by the collector's minute"),
    "clock_ahead/aggregator": _cannot("counting reads no clock"),
    "clock_ahead/sealer": Cell(
        "no round is sealed; /healthz, metrics and the page say why",
        "integration/test_cluster_clock.py::test_rounds_are_sealed_by_no_clock_that_is_ahead_of_redis",
    ),
    "clock_ahead/dashboard": Cell(
        "no round is sealed; /healthz, metrics and the page say why",
        "integration/test_cluster_clock.py::test_rounds_are_sealed_by_no_clock_that_is_ahead_of_redis",
    ),
    "clock_behind/agent": Cell(
        "the device goes on sending",
        "client/upload/test_uploader.py::test_a_clock_set_back_does_not_silence_the_device",
    ),
    "clock_behind/collector": Cell(
        "the counts and the release are those of a right clock",
        _NODE_KILL + "test_a_clock_that_jumps_spoils_no_count_and_no_release",
    ),
    "clock_behind/log": _cannot("a log judges by no clock"),
    "clock_behind/aggregator": _cannot("counting reads no clock"),
    "clock_behind/sealer": Cell(
        "seals come later, or not while clocks are five seconds apart",
        "aggregator/release/test_seal_clock.py::test_clocks_that_are_five_seconds_apart_seal_nothing",
    ),
    "clock_behind/dashboard": Cell(
        "seals come later, or not while clocks are five seconds apart",
        "aggregator/release/test_seal_clock.py::test_clocks_that_are_five_seconds_apart_seal_nothing",
    ),
    "cut/agent": Cell(
        "nothing: a request ends with its time, and the same bytes go later",
        "client/upload/test_timed_request.py::test_a_kept_connection_is_cut_as_well",
    ),
    "cut/collector": Cell(
        "503 while the broker cannot be reached; its return heals the log",
        "integration/test_kafka_log.py::test_broker_that_is_gone_fails_the_append_and_its_return_heals_the_log",
    ),
    "cut/log": Cell(
        "the page stands still and says why; what was not acknowledged is sent again and counted once",
        _CHAOS + "log-cut",
    ),
    "cut/aggregator": Cell(
        "the page stands still and says why, then goes on; nothing is lost or counted twice",
        _CHAOS + "cut",
    ),
    "cut/sealer": Cell(
        "the page says that the log is out of reach; seals come later, releases once",
        _CHAOS + "seal-cut",
    ),
    "cut/dashboard": Cell(
        "the page says that the connection is lost, keeps its numbers, and mends it",
        "chaos/page_cut.py both",
    ),
    "half_cut/agent": Cell(
        "nothing: half an answer is none, and the same bytes are sent again",
        "client/upload/test_transport.py::test_an_answer_that_is_cut_short_is_no_answer",
    ),
    "half_cut/collector": Cell(
        "no answer; the retry of the same bytes is accepted, for the reader to tell",
        _GATEWAY + "test_a_retry_after_an_answer_that_was_cut_off_is_stored_for_the_reader_to_tell",
    ),
    "half_cut/log": Cell(
        "records whose acknowledgement was lost are sent again and counted once",
        _CHAOS + "log-half-cut",
    ),
    "half_cut/aggregator": Cell(
        "a save that nobody heard of is found saved; nothing is counted twice",
        _CHAOS + "redis-half-cut",
    ),
    "half_cut/sealer": Cell(
        "seals that nobody heard of are written again, and change nothing",
        _CHAOS + "seal-half-cut",
    ),
    "half_cut/dashboard": Cell(
        "the page says that the connection is lost, keeps its numbers, and mends it",
        "chaos/page_cut.py half",
    ),
    "broker_down/agent": _NO_BROKER,
    "broker_down/collector": Cell(
        "503 until the broker is back",
        "integration/test_kafka_log.py::test_broker_that_is_gone_fails_the_append_and_its_return_heals_the_log",
    ),
    "broker_down/log": Cell(
        "the page stands still, then goes on; nothing is lost",
        _COUNTING + "test_broker_that_is_killed_and_returns_loses_nothing",
    ),
    "broker_down/aggregator": Cell(
        "the page stands still, then goes on; nothing is lost",
        _COUNTING + "test_broker_that_is_killed_and_returns_loses_nothing",
    ),
    "broker_down/sealer": Cell(
        "a seal that could not be written is tried again",
        "aggregator/release/test_sealing.py::test_seal_that_could_not_be_written_is_tried_again",
    ),
    "broker_down/dashboard": Cell(
        "every counter agrees with the truth at every published cut",
        _CHAOS + "broker",
    ),
    "redis_down/agent": _NO_REDIS,
    "redis_down/collector": _NO_REDIS,
    "redis_down/log": _NO_REDIS,
    "redis_down/aggregator": Cell(
        "one line that says so; nothing is taken for an empty store",
        _REDIS + "test_redis_that_is_not_there_is_a_store_error",
    ),
    "redis_down/sealer": Cell(
        "the page says since when it stands still, and goes on",
        _COMMANDS + "test_dashboard_outlives_redis_and_another_one_stands_by",
    ),
    "redis_down/dashboard": Cell(
        "the page says since when it stands still, and goes on",
        _COMMANDS + "test_dashboard_outlives_redis_and_another_one_stands_by",
    ),
    "rolled_back/agent": Cell(
        "the ledger is refused, and nothing is drawn from an older budget",
        "client/test_ledger_counter.py::test_an_older_copy_on_the_same_device_is_refused",
    ),
    "rolled_back/collector": _cannot("it keeps no state"),
    "rolled_back/log": Cell(
        "the worker ends and says that the log was cut",
        _COUNTING + "test_worker_whose_topic_was_cut_ends_and_says_so",
    ),
    "rolled_back/aggregator": Cell(
        "nothing: what Redis lost is counted again, once",
        _COUNTING + "test_redis_that_comes_back_older_loses_nothing_and_changes_no_release",
    ),
    "rolled_back/sealer": Cell(
        "the release has the same bytes",
        _COUNTING + "test_redis_that_comes_back_older_loses_nothing_and_changes_no_release",
    ),
    "rolled_back/dashboard": Cell(
        "the page waits until the store has come back to where it was",
        "aggregator/runners/test_publisher.py::test_store_that_comes_back_older_is_waited_for",
    ),
    "evicting/agent": _NO_REDIS,
    "evicting/collector": _NO_REDIS,
    "evicting/log": _NO_REDIS,
    "evicting/aggregator": Cell(
        "all end with one line; no false release",
        _LOSSES + "test_keys_that_redis_evicts_after_its_policy_changed_give_no_false_release",
    ),
    "evicting/sealer": Cell(
        "all end before anything is evicted",
        _LOSSES + "test_policy_that_changes_while_all_run_ends_them_before_anything_is_evicted",
    ),
    "evicting/dashboard": Cell(
        "a loss of any key is noticed or does no harm",
        _LOSSES + "test_loss_of_any_key_is_noticed_or_does_no_harm",
    ),
    "resharded/agent": _NO_REDIS,
    "resharded/collector": _NO_REDIS,
    "resharded/log": _NO_REDIS,
    "resharded/aggregator": Cell(
        "nothing: a partition's keys lie in one slot, on several servers",
        _REDIS + "TestRedisStoreOnACluster::test_partitions_lie_on_several_servers_and_archived_rounds_go",
    ),
    "resharded/sealer": Cell(
        "nothing: rounds are sealed and released while slots move",
        _CHAOS + "resharded",
    ),
    "resharded/dashboard": Cell(
        "nothing: what the page says agrees with the log at every cut",
        _CHAOS + "resharded",
    ),
    "altered/agent": _cannot("it knows no partitions"),
    "altered/collector": Cell(
        "one warning; reports go where those before them went",
        "integration/test_kafka_altered.py::test_a_restarted_collector_places_reports_as_those_before_it",
    ),
    "altered/log": Cell(
        "a note of more partitions than there are is refused",
        "integration/test_kafka_altered.py::test_a_note_of_more_partitions_than_there_are_is_refused",
    ),
    "altered/aggregator": Cell(
        "the documented way on counts all reports",
        "integration/test_kafka_altered.py::test_the_way_on_after_an_alter_counts_all_reports",
    ),
    "altered/sealer": Cell(
        "rounds in flight are counted once and sealed in every partition",
        "integration/test_kafka_growth.py::test_rounds_in_flight_over_growth_are_counted_once",
    ),
    "altered/dashboard": Cell(
        "a process that knows less than the log ends or refuses",
        "integration/test_kafka_growth.py::test_process_that_knows_less_than_the_log_ends_or_refuses",
    ),
    "duplicates/agent": Cell(
        "each round is answered once, however many ask at once",
        "client/agent/test_async_agent.py::test_many_tasks_at_once_answer_every_round_once",
    ),
    "duplicates/collector": Cell(
        "a body sent twice is taken twice; the reader tells the duplicate",
        _GATEWAY + "test_a_body_sent_twice_is_taken_twice_and_left_for_the_reader_to_tell",
    ),
    "duplicates/log": Cell(
        "another producer's order and repeats give the same releases",
        _CHAOS + "thrice",
    ),
    "duplicates/aggregator": Cell(
        "a duplicate is counted once",
        "integration/test_kafka_collector_kill.py::test_uploads_thrice_over_two_dying_collectors_count_once",
    ),
    "duplicates/sealer": Cell(
        "nothing: a seal that comes twice changes nothing",
        "aggregator/counting/test_counting.py::"
        "test_seal_freezes_counts_and_releases_ids_and_its_repeat_changes_nothing",
    ),
    "duplicates/dashboard": Cell(
        "the archive keeps the first version and refuses another",
        "aggregator/release/test_release.py::test_archive_keeps_the_first_version_and_refuses_another",
    ),
    "floods/agent": Cell(
        "a list of very many surveys is read so far and no further",
        "client/surveys/test_schedule.py::test_a_list_of_very_many_small_surveys_is_read_so_far",
    ),
    "floods/collector": Cell(
        "honest senders are answered beside hostile ones, and memory is bounded",
        "integration/test_hostile_crowd.py",
    ),
    "floods/log": Cell(
        "503 with Retry-After; who comes after it is served within 5 s",
        "integration/test_overload.py",
    ),
    "floods/aggregator": Cell(
        "hostile requests leave the node's counts as they were",
        "integration/test_node.py::test_hostile_requests_leave_the_node_as_it_was",
    ),
    "floods/sealer": Cell(
        "thousands of seals do not hold the log in one append",
        "aggregator/release/test_sealing.py::test_thousands_of_seals_do_not_hold_the_log_in_one_append",
    ),
    "floods/dashboard": Cell(
        "503 for a stream too many; the page polls",
        "aggregator/web/test_api.py::test_one_client_does_not_take_all_streams",
    ),
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command: its success, its seconds, the last line that it printed, what was said."""

    passed: bool
    seconds: float
    last: str
    said: tuple[str, ...]


@functools.cache
def outcome(command: str) -> Outcome:
    """Run a command once."""
    script, *words = command.split()
    if is_script := script.startswith("chaos/"):
        line = [sys.executable, str(ROOT / "bench" / script), *words]
    else:
        log = [
            "-o",
            "log_cli=true",
            "-o",
            "log_cli_level=WARNING",
            "-o",
            f"log_cli_format={_SAID}%(message)s",
        ]
        line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *log, f"tests/{command}"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            line,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env=os.environ | {"HUBBUB_TEST_LONG": "1"},
        )
    except subprocess.TimeoutExpired:
        return Outcome(False, time.monotonic() - began, f"took longer than {TIMEOUT_S} s", ())
    last = "".join((done.stdout.strip() or done.stderr.strip()).splitlines()[-1:])
    # A test that is skipped shows nothing.
    passed = done.returncode == 0 and (is_script or " passed" in done.stdout)
    return Outcome(passed, time.monotonic() - began, last, said(done.stdout, is_script=is_script))


def said(output: str, *, is_script: bool) -> tuple[str, ...]:
    """Return the most frequent distinct lines that a run said, numbers aside."""
    lines = [line.strip() for line in output.splitlines()]
    if is_script:
        found = [line.removeprefix("said").strip() for line in lines if line.startswith("said ")]
        # All that happened by itself, errors of workers among it.
        found += [line for line in lines if line.startswith("happened ")]
    else:
        found = [line.removeprefix(_SAID) for line in lines if line.startswith(_SAID)]
    shown = Counter(re.sub(r"\d+", "N", line).replace("|", "/")[:160] for line in found)
    return tuple(line for line, _ in shown.most_common(MOST_SAID))


def kept(path: Path) -> dict[str, Outcome]:
    """Return the outcomes in a file, by command."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        row["command"]: Outcome(row["passed"], row["seconds"], row["last"], tuple(row["said"]))
        for row in rows
    }


def chosen(words: list[str]) -> list[str]:
    """Return the cells that words name: a cell, a fault or a part; all without words.

    Raises:
        ValueError: If a word names none.
    """
    found: list[str] = []
    for word in words:
        mine = [name for name in CELLS if word in {name, *name.split("/")}]
        if not mine:
            raise ValueError(f"a cell must be FAULT/PART, a fault or a part (--list), got {word}")
        found += mine
    return list(dict.fromkeys(found)) if words else list(CELLS)


def listing() -> str:
    """Return the matrix, a line a cell."""
    return "\n".join(f"{name:24}{cell.kind:8}{cell.command or cell.says}" for name, cell in CELLS.items())


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cells", nargs="*", help="FAULT/PART, a fault or a part; all if absent")
    parser.add_argument("--list", action="store_true", help="print the matrix and run nothing")
    parser.add_argument("--json", action="store_true", help="a line of JSON a cell")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="outcomes, so that a run can go on")
    options = parser.parse_args(words)
    if options.list:
        print(listing())
        return 0
    try:
        names = chosen(options.cells)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if not options.json:
        print(
            "| fault | part | result | s | what must hold, or why it cannot occur | what was said |\n"
            "|---|---|---|---|---|---|",
            flush=True,
        )
    before = kept(options.keep) if options.keep else {}
    failed = 0
    for name in names:
        cell = CELLS[name]
        found = None
        if cell.command:
            found = before.get(cell.command) or outcome(cell.command)
            if options.keep and cell.command not in before:
                before[cell.command] = found
                with options.keep.open("a") as file:
                    file.write(json.dumps({"command": cell.command, **asdict(found)}) + "\n")
        failed += cell.kind == "open" or (found is not None and not found.passed)
        print(_json(name, found) if options.json else _row(name, found), flush=True)
    return int(failed > 0)


def _result(cell: Cell, found: Outcome | None) -> str:
    if found is None:
        return "OPEN" if cell.kind == "open" else "cannot occur"
    return "held" if found.passed else "FAILED"


def _json(name: str, found: Outcome | None) -> str:
    cell = CELLS[name]
    row: dict[str, object] = {"cell": name, "result": _result(cell, found), "says": cell.says}
    if found is not None:
        row |= {"seconds": round(found.seconds, 1), "last": found.last, "said": found.said}
    return json.dumps(row)


def _row(name: str, found: Outcome | None) -> str:
    cell, (fault, part) = CELLS[name], name.split("/")
    says = cell.says if found is None or found.passed else f"{cell.command}: {found.last}"
    seconds = "" if found is None else f"{found.seconds:.0f}"
    heard = "" if found is None else "; ".join(found.said) or "nothing"
    return f"| {FAULTS[fault]} | {part} | {_result(cell, found)} | {seconds} | {says} | {heard} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
