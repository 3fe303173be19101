"""A value that may be absent, asked by several surveys: every pair of records beside what the filter says.

A record is a number of minutes, absent or missing, and a sex. The truth is the largest loss over pairs of
records of all that was answered and of all that is pending, worked out from the channels' own weights.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from surveys import AGE_BY_SEX, MINUTES

from hubbub import Survey, SurveyError
from hubbub.filter import BayesianFilter, Query
from hubbub.testing import seeded
from hubbub_client.surveys.schedule import MEMOISED, scheduled_query

INTEGER = (
    MINUTES.replace('"number"', '"integer"')
    .replace("low = 0.0", "low = 0")
    .replace("high = 600.0", "high = 5")
)
EXACT = Survey.parse(INTEGER.replace("epsilon = 1.0", "epsilon = 4.0"))
AGAIN = Survey.parse(INTEGER.replace("epsilon = 1.0", "epsilon = 3.0").replace('"minutes"', '"again"', 1))
ENDS = Survey.parse(INTEGER.replace("epsilon = 1.0", "epsilon = 0.5").replace('"minutes"', '"ends"', 1))
HEAD, _, _ = MINUTES.partition("[attribute]")
TABLE_TEXT = (
    HEAD.replace('"minutes"', '"table"')
    + """
[[attribute]]
id = "minutes"
kind = "static"
type = "integer"
low = 0
high = 5
absent = true

[[attribute.category]]
name = "few"
range = [0, 2]

[[attribute.category]]
name = "many"
range = [3, 5]

[[attribute.category]]
name = "none"
values = ["absent"]

[[attribute]]
id = "sex"
kind = "static"
type = "label"
labels = ["f", "m"]

[mechanism]
name = "grr"
"""
)
TABLE = Survey.parse(TABLE_TEXT)
SURVEYS = (EXACT, AGAIN, ENDS, TABLE)
VALUES = (*range(6), "absent", None)
RECORDS = list(itertools.product(VALUES, ("f", "m", None)))


def likelihoods(survey: Survey) -> np.ndarray:
    """The chance of every symbol from every record, shape (records, symbols), by integers alone."""
    rows = survey.channel.weights() / survey.channel.total
    found = []
    for minutes, sex in RECORDS:
        values = (minutes, sex) if survey is TABLE else (minutes,)
        if survey is ENDS and isinstance(minutes, int):
            found.append((1 - minutes / 5) * rows[0] + minutes / 5 * rows[1])
        else:
            found.append(rows[survey.input_of(*values)])
    return np.log(np.array(found))


LOGS = {survey.id: likelihoods(survey) for survey in SURVEYS}


def truth(asked: list[tuple[Survey, int | None]]) -> float:
    """The largest loss of a pair of records, a pending answer at the symbol that is worst for the pair."""
    total = np.zeros((len(RECORDS), len(RECORDS)))
    for survey, symbol in asked:
        logs = LOGS[survey.id]
        gaps = logs[:, None, :] - logs[None, :, :]
        total += gaps.max(axis=2) if symbol is None else gaps[:, :, symbol]
    return float(total.max())


def query(survey: Survey) -> Query:
    return scheduled_query(survey, MEMOISED, pin_version=0)


def absent_read_as_missing(survey: Survey) -> Query:
    """The error: what does not know of absent takes the value for missing, on the same coordinate."""
    found = query(survey)
    if survey is not AGAIN:
        return found
    return Query(found.coordinate, found.channel, np.array([*range(6), 7, 7]))


def life(seed: int, named) -> tuple[float, float, float]:
    """The most by which an account was below the truth, rose by an answer, and was above the truth."""
    random, accountant = np.random.default_rng(seed), BayesianFilter(100.0)
    asked: dict[int, tuple[Survey, int | None]] = {}
    understated = raised = over = 0.0
    waiting: list[int] = []
    for survey in random.permutation(SURVEYS)[: random.integers(1, 5)]:
        (ticket,) = accountant.reserve_all([named(survey)])
        asked[ticket] = survey, None
        waiting.append(ticket)
    while True:
        known = truth(list(asked.values()))
        understated = max(understated, known - accountant.committed)
        over = max(over, accountant.committed - known)
        if not waiting:
            return understated, raised, over
        ticket = waiting.pop(int(random.integers(len(waiting))))
        survey, _ = asked[ticket]
        held = RECORDS[int(random.integers(len(RECORDS)))]
        values = held if survey is TABLE else held[:1]
        symbol = survey.channel.perturb(
            survey.input_of(*values), source=seeded(int(random.integers(1 << 30)))
        )
        before = accountant.committed
        accountant.record(ticket, symbol)
        asked[ticket] = survey, symbol
        raised = max(raised, accountant.committed - before)


def test_no_life_is_understated_and_no_answer_raises_what_is_committed():
    assert EXACT.form.whole and AGAIN.form.whole and not ENDS.form.whole
    merged = 0
    for seed in range(120):
        understated, raised, over = life(seed, query)
        assert understated <= 1e-8
        assert raised <= 0.0
        merged += over < 1e-6
    assert merged > 20  # where nothing is rounded, the answers about one value merge exactly


def test_control_absent_that_another_survey_takes_for_missing_is_caught():
    assert max(life(seed, absent_read_as_missing)[0] for seed in range(120)) > 0.1


def test_absent_is_a_reading_of_a_table_and_of_who_changed():
    assert TABLE.category_names[:4] == ("minutes: few", "minutes: many", "minutes: none", "minutes: missing")
    assert TABLE.input_labels[TABLE.input_of("absent", "m")] == "none / m"
    assert TABLE.input_labels[TABLE.input_of(None, "m")] == "missing / m"
    assert Survey.from_canonical(TABLE.canonical) == TABLE
    moved = Survey.parse(
        INTEGER.replace("static", "evolving")
        .replace("[mechanism]", '[transition]\nlag = 1\nasks = "pairs"\n\n[mechanism]')
        .replace('"key_value"\nshare = 0.1', '"grr"')
    )
    assert moved.input_labels[moved.input_of("absent", 3)] == "absent > 3"


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('[[attribute.category]]\nname = "none"\nvalues = ["absent"]\n\n', "", "no category for absent"),
        ("absent = true\n", "", "must hold integers"),
        ("range = [3, 5]", 'range = [3, "absent"]', "category"),
    ],
)
def test_categories_cover_absent_too(old, new, word):
    assert old in TABLE_TEXT
    with pytest.raises(SurveyError, match=word):
        Survey.parse(TABLE_TEXT.replace(old, new))


def test_a_form_that_knows_of_no_absent_refuses_it():
    text = INTEGER.replace('"key_value"\nshare = 0.1', '"grr"')
    with pytest.raises(SurveyError, match="must be left out but for key_value"):
        Survey.parse(text)
    assert "absent" not in AGE_BY_SEX
