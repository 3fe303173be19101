"""No loss is stated below what the transcript tells two records apart by; `bench/understated.py` tries more.

The bound knows survey bytes and answers alone. Mutants of the account, one mistake each, must fall below it.
"""

from __future__ import annotations

import ast
import math
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import independent_bound
import pytest
from independent_bound import Told, largest_log_ratio
from independent_reading import question
from missing_scores import in_turn, score
from random_cases import Case, cases, worlds
from random_surveys import SCORES

from hubbub.filter import Query
from hubbub.filter.regression.component import RegressionComponent
from hubbub.survey.survey import Survey
from hubbub_client.agent import filter_state
from hubbub_client.surveys import schedule


@pytest.mark.parametrize("seed", range(4))
def test_no_account_of_a_random_life_states_less_than_its_answers_tell(seed: int) -> None:
    """500 lives a seed, as in `bench/understated.py`: what was answered, and with all that is pending."""
    found = list(cases(500, seed=seed))
    assert [case for case in found if case.understated] == []
    forms = Counter(form for case in found for form in case.forms)
    assert forms.keys() >= {*SCORES, "grr", "dense"}
    assert len(forms) >= len(SCORES) + 8
    # The search reaches what is stated to a millionth in half of them: it is a bound worth standing below.
    assert sum(case.stated - case.found < 1e-6 * (1 + case.stated) for case in found) > 200
    assert sum(case.found > 0.5 for case in found) > 200


def test_random_lives_meet_every_kind_of_channel() -> None:
    """Between them the worlds of the lives above have surveys of all kinds, trees and orbits often."""
    kinds = Counter(survey.channel.kind for seed in range(4) for asked in worlds(5, seed) for survey in asked)
    seldom = {"category_grr", "levels", "local_hashing", "pbgrr", "set_levels", "subset", "unary"}
    assert kinds.keys() >= seldom
    assert min(kinds[name] for name in ("orbits", "tree", "tree_node")) >= 5


def test_what_is_missing_is_told_by_scores_that_nobody_with_a_value_would_answer_so() -> None:
    """The adversary of the fault that this stands against: five answers 1 to defaults in turn tell 1.5."""
    surveys = in_turn(0.5, 5)
    told = [Told(survey.digest, 0, 1) for survey in surveys]
    assert largest_log_ratio([each.canonical for each in surveys], told) == pytest.approx(1.5, abs=1e-9)
    alike = [score(f"s{i}", 0.5, falling=bool(i % 2), default=0.0) for i in range(5)]
    told = [Told(survey.digest, 0, 1) for survey in alike]
    found = largest_log_ratio([each.canonical for each in alike], told)
    # Without a point that is missing: the best x of x^3 (1 - x)^2, weights aside, against an end of the box.
    least = 1 / (1 + math.exp(0.5))
    law = [
        3 * math.log(least + x * (1 - 2 * least)) + 2 * math.log(1 - least - x * (1 - 2 * least))
        for x in (i / 10_000 for i in range(10_001))
    ]
    assert found == pytest.approx(max(law) - min(law), abs=1e-6)


def test_the_bound_imports_nothing_of_what_it_judges() -> None:
    folder = Path(independent_bound.__file__).parent
    for name in ("independent_bound", "independent_reading"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        imported = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        imported |= {a.name for each in ast.walk(tree) if isinstance(each, ast.Import) for a in each.names}
        found = {each.split(".")[0] for each in imported}
        assert "numpy" in found
        assert found <= {"independent_reading", "msgpack", "numpy", *sys.stdlib_module_names}


def test_answers_that_cannot_be_of_one_life_are_said() -> None:
    survey = score("one", 0.5, falling=False, default=0.0)
    with pytest.raises(AssertionError, match="two noises"):
        largest_log_ratio([survey.canonical], [Told(survey.digest, 0, 0), Told(survey.digest, 1, 1)])
    other = question(score("two", 0.5, falling=False, default=0.0).canonical).fields[0]
    wider = {"x": other.__class__("x", True, "number", (0.0, 2.0))}
    with pytest.raises(AssertionError, match="another domain"):
        largest_log_ratio([survey.canonical], [Told(survey.digest, 0, 0)], domains=wider)


Change = Callable[[Survey, int, Query], Query]


def _no_defaults(survey: Survey, slot: int, query: Query) -> Query:
    return query._replace(coordinate=query.coordinate[:3]) if query.coordinate[0] == "numbers" else query


def _first_default(survey: Survey, slot: int, query: Query) -> Query:
    if query.coordinate[0] != "numbers":
        return query
    return query._replace(coordinate=(*query.coordinate[:3], query.coordinate[3][0]))


def _whole_defaults(survey: Survey, slot: int, query: Query) -> Query:
    if query.coordinate[0] != "numbers":
        return query
    return query._replace(coordinate=(*query.coordinate[:3], tuple(map(int, query.coordinate[3]))))


def _one_rounding(survey: Survey, slot: int, query: Query) -> Query:
    """All surveys of one grid read one rounding draw."""
    if not isinstance(query.coordinate, tuple) or query.coordinate[0] != "rounded":
        return query
    return query._replace(coordinate=(*query.coordinate[:3], survey.channel.inputs))


def _last_values(survey: Survey, slot: int, query: Query) -> Query:
    """Values that were corrected count as the ones before."""
    return schedule.scheduled_query(survey, slot, pin_version=0)


def _missing_as_first(survey: Survey, slot: int, query: Query) -> Query:
    """What is missing reads as the first value, in tables and single surveys."""
    if query.mapping is None:
        return query
    mapping = query.mapping.copy()
    for axis in range(mapping.ndim):
        index = [slice(None)] * mapping.ndim
        index[axis] = -1
        first = [slice(None)] * mapping.ndim
        first[axis] = 0
        mapping[tuple(index)] = mapping[tuple(first)]
    return query._replace(mapping=mapping)


NUMBERS = ("grid grr", "boosted", "square_wave", "piecewise")
MUTANTS: dict[str, tuple[Change, tuple[str, ...]]] = {
    "defaults are no part of the coordinate": (_no_defaults, SCORES[:1]),
    "the first default stands for all": (_first_default, SCORES[:1]),
    "defaults are taken as whole numbers": (_whole_defaults, SCORES[:1]),
    "one rounding draw for all surveys": (_one_rounding, NUMBERS),
    "corrected values merge with earlier ones": (_last_values, ("grr", "linear", "subset")),
    "missing counts as the first value": (_missing_as_first, ("grr", "table", "unary")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_an_account_with_one_mistake_falls_below_the_bound(name: str, monkeypatch) -> None:
    change, mechanisms = MUTANTS[name]
    honest = schedule.scheduled_query

    def mistaken(survey: Survey, slot: int, *, pin_version: int) -> Query:
        query = honest(survey, slot, pin_version=pin_version)
        joint = not isinstance(query.coordinate, tuple)
        return query if joint and change in _OF_ONE else change(survey, slot, query)

    monkeypatch.setattr(filter_state, "scheduled_query", mistaken)
    if change is _last_values:
        monkeypatch.setattr(filter_state, "memoised_by", lambda *_: [])
    assert _caught(mechanisms)
    monkeypatch.undo()
    assert not any(case.understated for case in cases(100, seed=1, mechanisms=mechanisms))


_OF_ONE = (_no_defaults, _first_default, _whole_defaults)


def test_a_bound_of_scores_that_is_a_little_too_low_is_caught(monkeypatch) -> None:
    """By a hundredth of what was to be bounded, as if a search had stopped at what it reached."""
    honest = RegressionComponent._bound
    monkeypatch.setattr(
        RegressionComponent, "_bound", lambda *args, **keys: honest(*args, **keys) * 99 // 100
    )
    assert _caught(SCORES)


def _caught(mechanisms: tuple[str, ...]) -> Case | None:
    """The first understated case of 2,000."""
    return next((case for case in cases(2_000, seed=1, mechanisms=mechanisms) if case.understated), None)
