"""Anyone can make a release again from its counts, and every kind of lie about it is named."""

from __future__ import annotations

import copy
import itertools
import random
from collections import Counter

import numpy as np
import pytest
import random_surveys
from lies import LIES, printed, released, told
from surveys import small

from hubbub import Survey
from hubbub.checking import check_release
from hubbub.mechanisms.registry import KINDS
from hubbub_aggregator.release.estimates import METHOD
from hubbub_aggregator.release.verification import verify

FOUR = 'type = "label"\nlabels = ["a", "b", "c"]'
UNSEEN = {"local_hashing": ("the mean's end",)}
"""Parts that a check names as not checked: of hashing, what needs the bins."""


def test_honest_rounds_of_every_mechanism_are_verified_and_every_lie_is_named() -> None:
    """A round of every mechanism, and the five lies about it that were told least.

    `make evidence NAME=verify` has more of both.
    """
    chance, rng = random.Random(11), np.random.default_rng(11)  # noqa: S311 - test cases
    lies: Counter[str] = Counter()
    kinds = set()
    for mechanism in random_surveys.MECHANISMS:
        held = random_surveys.attributes(chance)
        survey = random_surveys.survey(chance, held, "s", mechanism)
        if survey is None:
            continue
        kinds.add(survey.channel.kind)
        n = int(rng.choice([3, 30, 300, 5000]))
        estimator = survey.estimator()
        for asked in (None, 2 * n):
            honest = printed(survey, n, rng, asked=asked)
            found = verify(survey, *honest, estimator)
            assert [str(each) for each in found.differences] == [], (mechanism, n, asked)
        assert found.exact > 20 and found.within + found.again > 0
        unseen = UNSEEN.get(survey.channel.kind, ())
        hidden = any(part.startswith("mean.") for part in found.unchecked)
        assert hidden == bool(unseen and honest[0]["mean"])
        seldom = sorted(LIES.keys() - set(unseen), key=lambda lie: (lies[lie], chance.random()))
        possible = ((lie, lied) for lie in seldom if (lied := told(lie, honest, chance)) is not None)
        for lie, lied in itertools.islice(possible, 5):
            lies[lie] += 1
            assert verify(survey, *lied, estimator).differences, (lie, mechanism, n)
    assert len(lies) > len(LIES) - 4
    assert len(kinds) >= len(KINDS) // 2


def test_a_release_of_another_shape_is_a_difference_and_no_error() -> None:
    survey = Survey.parse(small("one", FOUR))
    document, data = printed(survey, 500, np.random.default_rng(1))
    for key in list(document):
        for other in (None, 7, 10**400, "text", [], {}, [None], {"values": 3}):
            if document[key] != other and key != "method":
                assert verify(survey, document | {key: other}, data).differences or key in (
                    "cut",
                    "lost",
                    "enrolment",
                ), (key, other)
    document["values"][0]["estimate"] = 10**400  # no float holds it
    assert verify(survey, document, data).differences
    for bad in (b"", b"\xc0", bytes(100), data[:-1], data + b"\x00"):
        assert verify(survey, document, bad).differences
    assert verify(survey, {"method": METHOD}, data).differences


@pytest.mark.parametrize(("buckets", "n"), [(2, 3), (4, 3), (2, 300), (2, 5000)])
def test_honest_categories_of_hashing_are_verified(buckets: int, n: int) -> None:
    """Histograms that end in zeros, and scores of which two populations vary alike: eight rounds of each."""
    ranges = '[[category]]\nname = "few"\nrange = [0, 4]\n[[category]]\nname = "many"\nrange = [5, 8]\n'
    hashed = f'"local_hashing"\nbuckets = {buckets}'
    text = small("one", 'type = "integer"\nlow = 0\nhigh = 8').replace('"grr"', hashed) + ranges
    survey, rng = Survey.parse(text), np.random.default_rng(n)
    for _ in range(8):
        document, data = printed(survey, n, rng)
        assert check_release(survey, document, data).differences == []


def test_the_mean_of_a_score_is_checked_without_the_estimator() -> None:
    chance, rng = random.Random(2), np.random.default_rng(2)  # noqa: S311 - test cases
    survey = None
    while survey is None:
        survey = random_surveys.survey(chance, random_surveys.attributes(chance), "s", "linear")
    honest = printed(survey, 300, rng)
    assert check_release(survey, *honest).differences == []
    lied = told("the mean", honest, chance)
    assert lied is not None
    assert [each.path for each in check_release(survey, *lied).differences] == ["mean.estimate"]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_estimates_beyond_0_and_1_have_their_certificates(share: float) -> None:
    """Counts that no population explains: all reports the same, or none of a value."""
    survey = Survey.parse(small("one", FOUR))
    n = 200
    counts = np.zeros(survey.channel.bins, dtype=np.int64)
    counts[0], counts[-1] = round(share * n), n - round(share * n)
    found = verify(survey, *released(survey, counts, n))
    assert [str(each) for each in found.differences] == []


@pytest.mark.parametrize("mechanism", ["grr", "unary", "local_hashing"])
def test_poison_margins_that_are_cut_short_or_left_out_are_named(mechanism: str) -> None:
    """A list without its last margins says nothing wrong of those that it has."""
    survey = Survey.parse(small("one", FOUR).replace('"grr"', f'"{mechanism}"'))
    assert survey.channel.kind == mechanism
    document, data = printed(survey, 5000, np.random.default_rng(3))
    assert verify(survey, document, data).differences == []
    honest = document["poison_margin"]
    for lied in (
        honest | {"values": honest["values"][:-1]},
        honest | {"values": []},
        honest | {"values": [*honest["values"], 1.0]},
        honest | {"values": None},
        {key: each for key, each in honest.items() if key != "values"},
        None,
    ):
        assert verify(survey, document | {"poison_margin": lied}, data).differences, lied


@pytest.mark.parametrize("most", [None, 0])
def test_every_number_of_hashing_is_checked_or_named_as_not_checked(
    most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a table too large for the laws of categories (`most`), their errors and ends are named."""
    if most is not None:
        monkeypatch.setattr("hubbub.checking.scores._MOST", most)
    survey = Survey.parse(
        small("one", 'type = "integer"\nlow = 0\nhigh = 8').replace('"grr"', '"local_hashing"')
        + '[[category]]\nname = "few"\nrange = [0, 3]\n[[category]]\nname = "many"\nrange = [4, 8]\n'
    )
    document, data = printed(survey, 5000, np.random.default_rng(3))
    honest = verify(survey, document, data)
    assert honest.differences == []
    for part in ("values", "categories", "mean", "poison_margin"):
        stated = document[part]
        cell = stated[0] if isinstance(stated, list) else stated
        for key in cell.keys() - {"label", "category"}:
            lied = copy.deepcopy(document)
            place = lied[part][0] if isinstance(stated, list) else lied[part]
            place[key] = [each + 9.0 for each in cell[key]] if part == "poison_margin" else cell[key] + 0.01
            differs = bool(verify(survey, lied, data).differences)
            assert differs != (f"{part}.{key}" in honest.unchecked), (part, key)
