"""The filter of a ledger that is opened: rows of a score bring their proofs, and nothing is searched for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from devices import HEALTH_SURVEY
from missing_scores import score

from hubbub.filter import BayesianFilter
from hubbub.filter.regression.branching import BranchAndBound
from hubbub_client.agent.filter_state import FilterState, replay
from hubbub_client.errors import LedgerCorruptError
from hubbub_client.ledger.transcript import TranscriptEntry
from hubbub_client.surveys.schedule import MEMOISED, scheduled_query

SCORES = [score(f"s{i}", 0.5, falling=bool(i % 2), default=1.0) for i in range(3)]
SURVEYS = {survey.digest: survey for survey in (*SCORES, HEALTH_SURVEY)}


def rows_of_a_life() -> tuple[FilterState, list[TranscriptEntry]]:
    """Three scores reserved, one answered and one given back; a survey of labels beside them, answered."""
    state, rows = FilterState(BayesianFilter(4.0)), []
    for ticket, (survey, slot) in enumerate([*((each, MEMOISED) for each in SCORES), (HEALTH_SURVEY, 0)]):
        query = scheduled_query(survey, slot, pin_version=0)
        assert state.filter.reserve_all([query]) == (ticket,)
        row = TranscriptEntry("reserve", ticket, survey.digest, slot, 0)
        rows.append(state.proved(row, survey))
        state.reserved([row], SURVEYS)
    for kind, ticket in (("record", 0), ("cancel", 1), ("record", 3)):
        symbol = 1 if kind == "record" else None
        row = replace(rows[ticket], kind=kind, symbol=symbol, bound=None)
        survey = SURVEYS[row.digest]
        rows.append(state.proved(row, survey))
        (state.record if kind == "record" else state.cancel)(rows[-1], survey)
    return state, rows


def test_rows_with_their_proofs_give_the_same_account_without_a_search(monkeypatch) -> None:
    lived, rows = rows_of_a_life()
    assert [row.bound is None for row in rows] == [False, False, False, True, False, False, True]
    monkeypatch.setattr(BranchAndBound, "__init__", lambda *_, **__: pytest.fail("it searched"))
    again = replay(rows, SURVEYS, budget=4.0)
    assert (again.loss, again.committed) == (lived.loss, lived.committed)
    assert (again.open, again.recorded) == (lived.open, lived.recorded)


def test_a_row_of_a_score_without_its_proof_is_refused_and_so_is_a_proof_of_anything_else() -> None:
    _, rows = rows_of_a_life()
    for place, row in enumerate(rows):
        other = (0, 1) if row.bound is None else None
        with pytest.raises(LedgerCorruptError, match=r"its proof|does not replay"):
            replay([*rows[:place], replace(row, bound=other), *rows[place + 1 :]], SURVEYS, budget=4.0)
