"""The contract of every form: each golden survey keeps it, and so does each that is added beside them."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import msgpack
import numpy as np
import pytest

from hubbub import Survey
from hubbub.survey.domain import Attribute, LabelDomain, NumberDomain
from hubbub.survey.forms import form_from_spec
from hubbub.survey.rules import Rules
from hubbub.testing import seeded

GOLDEN = Path(__file__).parents[2] / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("survey-*.toml"))


@pytest.fixture(params=NAMES)
def survey(request: pytest.FixtureRequest) -> Survey:
    return Survey.from_canonical((GOLDEN / f"{request.param}.bin").read_bytes())


def some_values(attribute: Attribute) -> list[object]:
    """A few values of a domain, its ends among them, a value outside, and none."""
    domain = attribute.domain
    if isinstance(domain, LabelDomain):
        return [domain.labels[0], domain.labels[-1], "no label of it", None]
    middle = (domain.low + domain.high) / 2
    inner = middle if isinstance(domain, NumberDomain) else math.floor(middle)
    return [domain.low, inner, domain.high, domain.high + 1, None]


def answers(survey: Survey) -> list[tuple[object, ...]]:
    found = list(product(*map(some_values, survey.form.reads)))
    return found[:: max(1, len(found) // 60)]


def test_a_form_describes_every_input_of_its_channel(survey: Survey) -> None:
    form, inputs = survey.form, survey.channel.inputs
    assert len(form.input_labels) == inputs
    assert np.atleast_2d(form.category_of).shape[1] == inputs
    assert len(form.category_names) == (form.category_of.max() + 1 if form.category_of.size else 0)
    assert form.points is None or form.points.shape == (inputs,)
    assert form.tells_values == bool(form.category_names)
    form.check(Rules("<survey>"), survey.channel)


def test_a_form_is_read_from_what_it_writes(survey: Survey) -> None:
    form = survey.form
    assert Survey.from_canonical(survey.canonical) == survey
    assert set(form.reads) == set(form.attributes) and (len(form.reads) > len(form.attributes)) == (
        form.lag > 0
    )
    if not isinstance(form.to_spec()[0], str):  # the older layout has no form
        return
    spec = msgpack.unpackb(msgpack.packb(form.to_spec()))
    again = form_from_spec(form.attributes, spec, survey.epsilon)
    assert type(again) is type(form)
    assert again.to_spec() == form.to_spec()


def test_the_map_has_the_input_of_every_combination_of_values(survey: Survey) -> None:
    form = survey.form
    for values in answers(survey):
        got = survey.input_of(*values, source=seeded(1))
        assert 0 <= got < survey.channel.inputs
        if form.mapping is not None:
            places = tuple(a.index_of(value) for a, value in zip(form.reads, values, strict=True))
            assert form.mapping.shape == tuple(attribute.size + 1 for attribute in form.reads)
            assert got == form.mapping[places]
    assert form.mapping is None or form.mapping.flat[-1] == survey.missing_input


def test_the_number_of_an_answer_is_the_mean_of_its_inputs(survey: Survey) -> None:
    """A form without a map rounds at random: the mean of 2,000 draws is near the number.

    By Hoeffding's bound on the range of the points, that mean is farther off than what is allowed with
    probability 2 e^-24 = 8e-11 per answer, so 1e-8 for all answers of all surveys that round.
    """
    form = survey.form
    for values in answers(survey):
        number = form.number_of(values)
        if form.points is None:
            assert number is None
            continue
        draws = 1 if form.mapping is not None else 2_000
        source = seeded(2)
        found = np.array([form.points[survey.input_of(*values, source=source)] for _ in range(draws)])
        if number is None:
            assert np.isnan(found).all()
            continue
        width = float(np.nanmax(form.points) - np.nanmin(form.points)) if draws > 1 else 1e-9
        assert abs(float(found.mean()) - number) <= width * math.sqrt(12 / draws)


def test_many_inputs_follow_the_law_of_single_ones(survey: Survey) -> None:
    """2,000 devices of one record: frequencies of inputs differ from 2,000 single draws' by less than .14.

    Each frequency is within .07 of its probability but with chance 2 e^(-2 x 2000 x .07^2) = 6e-9, Hoeffding.
    """
    form = survey.form
    if form.mapping is not None:
        return
    for values in answers(survey)[:4]:
        record = [value if isinstance(value, int | float) else None for value in values]
        inside = [
            None if value is None or not a.domain.low <= value <= a.domain.high else float(value)
            for a, value in zip(survey.attributes, record, strict=True)
        ]
        columns = [np.full(2_000, np.nan if value is None else value) for value in inside]
        many = np.bincount(form.inputs_of(columns, seeded(3)), minlength=survey.channel.inputs) / 2_000
        source = seeded(4)
        single = np.bincount(
            [survey.input_of(*inside, source=source) for _ in range(2_000)], minlength=survey.channel.inputs
        )
        assert np.abs(many - single / 2_000).max() < 0.14


def test_the_estimator_of_a_form_returns_the_frequencies_that_its_channel_was_given(survey: Survey) -> None:
    """Rounded expected counts of 10^12 reports: each count is within one half, so estimates within 1e-6."""
    channel = survey.channel
    chances = np.random.default_rng(5).dirichlet(np.ones(channel.inputs))
    n = 10**12
    counts = np.rint(n * channel.expected(chances)).astype(np.int64)
    if not channel.width:
        counts[counts.argmax()] += n - counts.sum()
    estimate = survey.estimator()(counts, n)
    if survey.form.tells_values:
        told = ~np.isnan(estimate.values)
        assert told.all() or channel.kind == "category_grr"  # which hides values in their categories
        assert np.allclose(estimate.values[told], chances[told], atol=1e-6)
        margins = np.zeros(len(survey.category_names))
        for row in np.atleast_2d(survey.category_of):
            np.add.at(margins, row, chances)
        assert np.allclose(estimate.categories, margins, atol=1e-6)
    if survey.points is not None and channel.kind != "category_grr":
        told = ~np.isnan(survey.points)
        mean = float(survey.points[told] @ chances[told] / chances[told].sum())
        assert estimate.mean == pytest.approx(mean, abs=1e-4 * float(np.ptp(survey.points[told])))
