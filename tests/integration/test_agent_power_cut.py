"""Power fails at any point, and the disk forgets what was not synced: nothing that was sent is forgotten."""

import random
from pathlib import Path

import power_cut
import pytest
from devices import DAY_S, VISITS_SURVEY, Clock, Collector, changed, opener
from power_cut import Step
from surveys import LABELS, START_S

from hubbub.wire import report as wire
from hubbub.wire.report import decode_upload
from hubbub_client.agent.filter_state import replay
from hubbub_client.errors import LedgerError
from hubbub_client.ledger.ledger import Ledger

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(power_cut.library() is None, reason="needs SQLite as a shared library"),
]

BUDGET = 6.0
EVOLVING = changed(LABELS, rounds="20", epsilon="0.1")


class Life:
    """A folder with a closed ledger, and what happened in it after that."""

    def __init__(self, folder: Path, *, synchronous: str) -> None:
        clock, collector = Clock(START_S + 10), Collector()
        answered = collector.reply
        with opener(folder, clock, collector) as make:
            make(BUDGET).close()
            self.start = {path.name: path.read_bytes() for path in folder.iterdir()}
            with power_cut.recorded(folder) as self.steps:

                def reply(reports: list[wire.Report]):
                    self.steps.append(Step("sent", data=collector.bodies[-1]))
                    return answered(reports)

                collector.reply = reply
                agent = make(BUDGET)
                agent._ledger._db.execute(f"PRAGMA synchronous = {synchronous}")
                for survey in (EVOLVING, VISITS_SURVEY):
                    assert agent.enrol(survey).accepted
                agent.set("visits", 3)
                for day in range(8):
                    clock.now_s = START_S + day * DAY_S + 10
                    agent.answer()
                    agent.upload()
                agent.close()

    def check(self, folder: Path, cut: int, unsynced: str, seed: int) -> None:
        """Holds what is left after a cut against what was sent before it.

        Raises:
            AssertionError: If something was sent that the ledger does not know.
            LedgerError: If the ledger does not open.
        """
        for path in folder.iterdir():
            path.unlink()
        steps = self.steps[:cut]
        left = power_cut.after_cut(self.start, steps, unsynced=unsynced, chance=random.Random(seed))  # noqa: S311 - what is kept
        for name, data in left.items():
            (folder / name).write_bytes(data)
        sent = {}
        for step in steps:
            if step.kind == "sent":
                for report in decode_upload(step.data, max_reports=99):
                    assert sent.setdefault(report.id, report) == report
        ledger = Ledger(folder / "ledger.db", budget=BUDGET)
        try:
            rows, answers = ledger.transcript(), ledger.answers()
        finally:
            ledger.close()
        surveys = {survey.digest: survey for survey in (EVOLVING, VISITS_SURVEY)}
        book = replay(rows, surveys, budget=BUDGET)
        assert book.committed <= BUDGET
        written = {answer.id: answer for answer in answers}
        assert sent.keys() <= written.keys(), "something was sent that is not in the ledger"
        for identifier, report in sent.items():
            slot = -1 if report.digest == VISITS_SURVEY.digest else report.round
            assert book.recorded[report.digest, slot] == report.symbol
            assert written[identifier].round == report.round


@pytest.mark.parametrize("unsynced", ["lost", "kept", "torn"])
def test_a_power_cut_at_any_write_loses_nothing_that_was_sent(tmp_path: Path, unsynced: str) -> None:
    (tmp_path / "life").mkdir()
    (tmp_path / "after").mkdir()
    life = Life(tmp_path / "life", synchronous="FULL")
    assert sum(step.kind == "sent" for step in life.steps) == 8
    assert sum(step.kind == "sync" for step in life.steps) > 30
    for cut in range(len(life.steps) + 1):
        life.check(tmp_path / "after", cut, unsynced, seed=cut)


def test_a_ledger_that_does_not_wait_for_the_disk_is_caught(tmp_path: Path) -> None:
    """Negative control: without fsync the same cuts find answers that were sent and are gone."""
    (tmp_path / "life").mkdir()
    (tmp_path / "after").mkdir()
    life = Life(tmp_path / "life", synchronous="OFF")
    caught = 0
    for cut in range(0, len(life.steps) + 1, 5):
        try:
            life.check(tmp_path / "after", cut, "lost", seed=cut)
        except (AssertionError, LedgerError):
            caught += 1
    assert caught > 10
