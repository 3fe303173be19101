"""What rounds are sealed by: the earliest clock, and none where clocks differ by more than they should."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from counting_logs import MemoryLog, MemoryStore, announcement, batch, report_id, segment
from hypothesis import given
from hypothesis import strategies as st
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub_aggregator.errors import ClockDoubtError
from hubbub_aggregator.release.seal_clock import AgreedClock, SteadyClock
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.web.view import LiveView
from hubbub_collector.boot_clock import boot_s

HEALTH = Survey.parse(LABELS)
START_S = float(HEALTH.start_s)
DUE_S = HEALTH.round_end_s(0) + HEALTH.lateness_s + 30.0


class Machine:
    """A machine's two clocks."""

    def __init__(self) -> None:
        self.now_s, self.up_s = START_S, 1000.0

    def clock(self) -> float:
        return self.now_s

    def boot(self) -> float:
        return self.up_s

    def run(self, seconds: float) -> None:
        """Time passes, asleep or not."""
        self.now_s += seconds
        self.up_s += seconds


def test_a_clock_that_keeps_time_is_followed() -> None:
    machine = Machine()
    steady = SteadyClock(machine.clock, machine.boot, tolerance_s=5.0)
    for seconds in (0.0, 1.0, 86_400.0, 1e7):
        machine.run(seconds)
        assert steady() == pytest.approx(machine.now_s, abs=1e-3)


def test_a_clock_that_ran_a_little_ahead_brings_no_round_s_end_nearer() -> None:
    machine = Machine()
    steady = SteadyClock(machine.clock, machine.boot, tolerance_s=5.0)
    machine.run(100.0)
    machine.now_s += 5.0
    assert steady() == START_S + 100.0


def test_a_clock_that_ran_ahead_says_so_until_it_is_set_right() -> None:
    machine = Machine()
    steady = SteadyClock(machine.clock, machine.boot, tolerance_s=5.0)
    machine.now_s += 3600.0
    for _ in range(3):
        machine.run(60.0)
        with pytest.raises(ClockDoubtError, match="by more than 5 s, got 3600 s: no round is sealed"):
            steady()
    machine.now_s -= 3600.0
    assert steady() == machine.now_s


def test_a_clock_that_was_ahead_at_the_start_and_was_set_right_may_not_go_back_there() -> None:
    machine = Machine()
    machine.now_s += 3600.0
    steady = SteadyClock(machine.clock, machine.boot, tolerance_s=5.0)
    machine.now_s -= 3600.0
    assert steady() == machine.now_s
    machine.now_s += 3600.0
    with pytest.raises(ClockDoubtError):
        steady()


def test_a_clock_that_was_set_back_is_followed() -> None:
    machine = Machine()
    steady = SteadyClock(machine.clock, machine.boot, tolerance_s=5.0)
    machine.now_s -= 7200.0
    assert steady() == machine.now_s


@given(
    steps=st.lists(st.tuples(st.floats(0, 1e6), st.floats(-1e6, 1e6)), max_size=8),
    ahead=st.floats(-1e5, 1e5),
)
def test_the_steady_time_is_never_ahead_of_the_clock_nor_of_the_truth(
    steps: list[tuple[float, float]], ahead: float
) -> None:
    # `ahead` is what the clock is wrong by at the start; what it says then is all that is known of the truth.
    machine = Machine()
    machine.now_s += ahead
    steady, believed = SteadyClock(machine.clock, machine.boot, tolerance_s=5.0), machine.now_s
    for seconds, jump in steps:
        machine.run(seconds)
        believed += seconds
        machine.now_s += jump
        try:
            found = steady()
        except ClockDoubtError:
            assert machine.now_s > min(believed, machine.now_s - 5.0)
            continue
        assert found <= machine.now_s + 1e-3
        assert found <= believed + 1e-3


@pytest.mark.parametrize(("apart", "found"), [(0.0, 0.0), (4.9, 0.0), (-4.9, -4.9)])
def test_the_earlier_of_two_clocks_that_agree_is_taken(apart: float, found: float) -> None:
    agreed = AgreedClock(lambda: START_S, lambda: [START_S + apart])
    assert agreed() == pytest.approx(START_S + found)


@pytest.mark.parametrize("apart", [5.1, -5.1, 3600.0, -1e9])
def test_clocks_that_are_five_seconds_apart_seal_nothing(apart: float) -> None:
    agreed = AgreedClock(lambda: START_S, lambda: [START_S, START_S + apart])
    with pytest.raises(ClockDoubtError, match="must agree within 5 s"):
        agreed()


@pytest.mark.parametrize(("apart", "found"), [(4.9, 4.9), (-4.9, 0.0)])
def test_the_later_is_taken_where_an_early_moment_harms(apart: float, found: float) -> None:
    agreed = AgreedClock(lambda: START_S, lambda: [START_S + apart], believed="latest")
    assert agreed() == pytest.approx(START_S + found)


def test_the_wait_for_an_answer_is_no_difference() -> None:
    ticks: Iterator[float] = iter([START_S, START_S + 30.0])
    agreed = AgreedClock(lambda: next(ticks), lambda: [START_S + 20.0])
    assert agreed() == START_S


class Setting:
    def __init__(self, folder: Path) -> None:
        self.log, self.view, self.machine = MemoryLog(), LiveView(), Machine()
        self.archive = SqliteArchive(folder / "archive.sqlite")
        self.log.everywhere(announcement(HEALTH))
        for i in range(300):
            self.log.append({i % 2: [batch(segment(HEALTH, 0, [(report_id(i), i % 5)]))]})
        clock = SteadyClock(self.machine.clock, self.machine.boot, tolerance_s=5.0)
        self.worker = Worker(self.log, MemoryStore(), archive=self.archive, view=self.view, clock=clock)
        self.settle()

    def settle(self) -> None:
        while self.worker.step():
            pass
        self.worker.step()


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    setting = Setting(tmp_path)
    yield setting
    setting.archive.close()


def test_a_worker_in_doubt_about_its_clock_counts_and_does_not_seal(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    ends = [setting.log.end(p) for p in range(2)]
    setting.machine.now_s = 2 * DUE_S
    for _ in range(3):
        setting.settle()
    assert [setting.log.end(p) for p in range(2)] == ends
    assert "ahead of the boot clock" in setting.view.snapshot()["unsealed"]
    assert len(caplog.records) == 1
    # It goes on counting, and goes on saying so.
    setting.log.append({0: [batch(segment(HEALTH, 0, [(report_id(999), 0)]))]})
    setting.settle()
    assert setting.view.snapshot()["accounting"]["accepted"] == 301
    assert "unsealed" in setting.view.snapshot()
    setting.machine.now_s = START_S
    setting.settle()
    assert "unsealed" not in setting.view.snapshot()
    setting.machine.run(DUE_S - START_S)
    setting.settle()
    setting.settle()
    assert setting.archive.rounds() == [(HEALTH.digest, 0)]


def test_the_boot_clock_counts_what_the_kernel_counts() -> None:
    before = boot_s()
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert before - 0.02 <= uptime <= boot_s() + 0.02
