"""A node whose clock is set ahead while it runs: rounds stay open, its log stays whole, and it says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from counting_logs import announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub_deploy import node
from hubbub_deploy.errors import DeployError
from hubbub_deploy.node import NodeSettings

HEALTH = Survey.parse(LABELS)


@pytest.mark.parametrize("grace_s", [0.0, 0.99])
def test_a_grace_that_leaves_no_time_to_write_a_batch_is_refused(tmp_path: Path, grace_s: float) -> None:
    with pytest.raises(DeployError, match=f"grace_s must be a number of at least 1, got {grace_s}"):
        NodeSettings(surveys=(HEALTH,), data_dir=tmp_path, grace_s=grace_s)


@pytest.mark.parametrize(("grace_s", "delivery_s"), [(5.0, 5.0), (60.0, 10.0), (1.0, 1.0)])
def test_a_node_answers_for_no_batch_that_took_longer_than_the_grace(
    tmp_path: Path, grace_s: float, delivery_s: float
) -> None:
    settings = NodeSettings(surveys=(HEALTH,), data_dir=tmp_path, grace_s=grace_s)
    assert node._within_grace(settings).delivery_s == delivery_s


@pytest.mark.parametrize(("ahead_s", "sealed"), [(0.0, True), (3600.0, False)])
def test_a_node_seals_by_no_clock_that_ran_ahead(tmp_path: Path, ahead_s: float, sealed: bool) -> None:
    # The round is due when the node starts, or a jump after it; the boot clock is the machine's own.
    due_s = HEALTH.round_end_s(0) + HEALTH.lateness_s + 5.0
    now = [due_s + 1.0 - ahead_s]
    settings = NodeSettings(surveys=(HEALTH,), data_dir=tmp_path, partitions=2, clock=lambda: now[0])
    with node._parts(settings) as (log, worker, view):
        log.publish_survey(HEALTH.digest, announcement(HEALTH))
        for i in range(200):
            log.append({i % 2: [batch(segment(HEALTH, 0, [(report_id(i), i % 5)]))]})
        now[0] += ahead_s
        for _ in range(4):
            while worker.step():
                pass
        (survey,) = view.snapshot()["surveys"]
        (document,) = survey["rounds"]
        assert document["sealed"] is sealed
        assert (view.unsealed is None) is sealed


def test_a_node_whose_clock_leaps_deletes_nothing_of_its_log(tmp_path: Path) -> None:
    now, up = [float(HEALTH.start_s + 60)], [1000.0]
    settings = NodeSettings(
        surveys=(HEALTH,),
        data_dir=tmp_path,
        partitions=1,
        log_keep_s=7 * 86_400.0,
        clock=lambda: now[0],
        boot_clock=lambda: up[0],
    )

    def pass_s(seconds: float) -> None:
        now[0], up[0] = now[0] + seconds, up[0] + seconds

    def settle() -> None:
        for _ in range(8):
            while worker.step():
                pass

    with node._parts(settings) as (log, worker, _):
        log.publish_survey(HEALTH.digest, announcement(HEALTH))
        minute = HEALTH.start_s // 60
        for i in range(20):
            log.append({0: [batch(segment(HEALTH, 0, [(report_id(i), i % 5)]), minute=minute)]})
        settle()
        pass_s(HEALTH.round_end_s(0) + HEALTH.lateness_s + 6.0 - now[0])
        settle()
        begin, end = log.begin(0), log.end(0)
        now[0] += 365 * 86_400.0
        settle()
        assert (log.begin(0), log.end(0)) == (begin, end)
        now[0] -= 365 * 86_400.0
        pass_s(9 * 86_400.0)
        settle()
        assert log.begin(0) > begin + 20
