"""Surveys of sets: files, canonical bytes, inputs, estimates, and what refuses them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import msgpack
import numpy as np
import pytest
from lies import LIES, released, told
from surveys import LABELS, SETS

from hubbub import Survey, SurveyError
from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms import SetSelection, set_selection
from hubbub.survey import Attribute, ItemSet, attribute_from_spec, in_list_order
from hubbub.testing import seeded
from hubbub_aggregator.release.verification import verify

SURVEY = Survey.parse(SETS)
APPS = ["mail", "maps", "music", "news", "notes", "photos"]


def test_a_file_compiles_to_set_selection_and_back():
    assert isinstance(SURVEY.form, ItemSet)
    assert isinstance(SURVEY.channel, SetSelection)
    assert (SURVEY.channel.inputs, SURVEY.channel.most, SURVEY.channel.bins) == (7, 3, 10)
    again = Survey.from_canonical(SURVEY.canonical)
    assert again == SURVEY
    assert again.form.most == 3
    assert SURVEY.input_labels == (*APPS, "missing")
    assert SURVEY.attribute == Attribute.items("apps", APPS, kind="static")
    assert attribute_from_spec(SURVEY.attribute.to_spec()) == SURVEY.attribute
    assert SURVEY.attribute != Attribute.labels("apps", APPS, kind="static")


def test_the_golden_survey_keeps_its_bytes():
    golden = Path(__file__).parents[2] / "golden"
    assert Survey.load(golden / "sets.toml").canonical == (golden / "sets.bin").read_bytes()


@pytest.mark.parametrize(
    ("value", "mask"),
    [
        ([], 0),
        (["maps"], 0b10),
        ({"mail", "news"}, 0b1001),
        (("photos", "photos", "chess", 7), 0b100000),
        (None, 0b1000000),
        ("mail", 0b1000000),
        (5, 0b1000000),
    ],
)
def test_a_value_is_the_items_that_it_holds_or_missing(value, mask):
    assert SURVEY.input_of(value) == mask


def test_of_a_larger_set_every_item_is_sent_as_often():
    """3 of 6 are drawn in 6,000 trials: each item's count is Bin(6000, 1/2), of deviation 38.7; 6 of them."""
    found = [SURVEY.input_of(APPS, source=seeded(place)) for place in range(6_000)]
    assert {mask.bit_count() for mask in found} == {3}
    counts = Counter(item for mask in found for item in range(6) if mask >> item & 1)
    assert all(abs(counts[item] - 3_000) < 6 * 38.8 for item in range(6))


def crowd(n: int) -> np.ndarray:
    """Masks of n devices: a third has mail and maps, a third nothing, a third is missing."""
    return np.array([0b11, 0, 0b1000000] * (n // 3), dtype=np.uint8)[:, None]


def test_estimates_hold_the_truth_and_add_up_to_no_total():
    """n = 60,000 at epsilon 1: seven shares within 6 of their errors, a false alarm below 2e-8."""
    estimate = SURVEY.estimate(SURVEY.channel.perturb(crowd(60_000), source=seeded(1)))
    truth = np.array([1, 1, 0, 0, 0, 0, 1]) / 3
    assert (np.abs(estimate.values - truth) < 6 * estimate.value_errors).all()
    spans = estimate.simultaneous()
    assert ((spans.values_low <= truth) & (truth <= spans.values_high)).all()
    view = estimate.consistent()
    np.testing.assert_array_equal(view.values, np.clip(estimate.values, 0.0, 1.0))
    assert estimate.empirical_bayes().values.shape == (7,)
    assert estimate.effective_size() > 0
    assert estimate.effective_size("categories") is None
    assert (estimate.poison_margin().values >= 1).all()
    with pytest.raises(ParameterError, match="items of sets"):
        estimate.covariance()


def test_errors_are_those_of_a_score_of_two_values():
    channel = SURVEY.channel
    shares = np.array([0.5, 0.1, 0, 0, 0, 0, 0.2])
    p, q = float(channel.p), float(channel.q)
    due = np.sqrt((shares * p * (1 - p) + (1 - shares) * q * (1 - q)) / 400) / (p - q)
    expected = SURVEY.estimator().expected_estimate(shares, 400)
    np.testing.assert_allclose(expected.values, shares, atol=1e-12)
    np.testing.assert_allclose(expected.value_errors, due, rtol=1e-12)


def test_a_release_is_verified_and_lies_about_it_are_named():
    symbols = SURVEY.channel.perturb(crowd(3_000), source=seeded(2))
    honest = released(SURVEY, SURVEY.channel.tally(symbols), 3_000, asked=4_000)
    document, _ = honest
    assert [cell["label"] for cell in document["values"]] == [*APPS, "missing"]
    assert document["categories"] == [] and document["mean"] is None
    assert verify(SURVEY, *honest, SURVEY.estimator()).differences == []
    chance, told_lies = random.Random(1), 0  # noqa: S311 - test cases
    for lie in sorted(LIES):
        lied = told(lie, honest, chance)
        if lied is not None:
            told_lies += 1
            assert verify(SURVEY, *lied, SURVEY.estimator()).differences, lie
    assert told_lies > 5


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("most = 3", "", "mechanism.most: must be given"),
        ("most = 3", "most = 7", "must be an integer from 1 to 6"),
        ("most = 3", "most = 3\nsize = 8", "must be an integer from 1 to 7"),
        ("most = 3", "most = 3\nparticipation = 0.5", "must be 1 for sets"),
        ('type = "set"', 'type = "label"', "must be set for the mechanism set"),
        ('name = "set"\nmost = 3', 'name = "subset"', "must not be set unless mechanism.name is set"),
        ('name = "set"\nmost = 3', 'name = "auto"', "must not be set unless mechanism.name is set"),
        ('labels = ["mail", ', 'labels = ["mail", "mail", ', "must differ"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_by_name(old, new, rule):
    with pytest.raises(SurveyError, match=rule):
        Survey.parse(SETS.replace(old, new))


def test_bytes_that_ask_sets_by_another_form_are_refused():
    labels = Survey.parse(LABELS)
    spec = SURVEY.attribute.to_spec()
    fields = msgpack.unpackb(labels.canonical)
    fields[5] = [*spec[:3], fields[5][3]]
    with pytest.raises(SurveyError):
        Survey.from_canonical(msgpack.packb(fields))
    fields = msgpack.unpackb(SURVEY.canonical)
    for place, value in (
        (8, ["set", 2]),
        (8, ["set", 0]),
        (7, set_selection(8, most=3, epsilon=1.0).to_spec()),
    ):
        changed = [*fields]
        changed[place] = value
        with pytest.raises((SurveyError, WireError)):
            Survey.from_canonical(msgpack.packb(changed))


MORE = Survey.parse(SETS.replace("most = 3", "most = 3\nmore = true"))


def test_having_more_items_than_count_is_an_item_of_its_own():
    assert MORE.input_labels == (*APPS, "more than 3", "missing")
    assert (MORE.channel.inputs, MORE.channel.bins) == (8, 11)
    assert Survey.from_canonical(MORE.canonical) == MORE and MORE.form.to_spec() == ["set", 3, "more"]
    assert MORE.digest.hex() == "8b879d812ec5e5eec455d486eaf40219"  # these bytes stay
    newest = Survey.from_canonical((Path(__file__).parents[2] / "golden" / "interactions.bin").read_bytes())
    assert in_list_order([newest, MORE, SURVEY]) == [SURVEY, MORE, newest]
    assert (MORE.input_of(["maps", "chess"]), MORE.input_of(None), MORE.input_of(APPS[:3])) == (2, 128, 7)
    assert "and whether you have more" in MORE.form.asks_for(["apps"])


def test_true_shares_lie_between_the_shares_and_the_share_of_more_above():
    """4,000 devices with 0 to 6 items; of larger sets two are drawn evenly: 6 errors, 2e-9 for each."""
    rng, source, n = np.random.default_rng(8), seeded(4), 4000
    crowd = [[APPS[j] for j in np.flatnonzero(rng.random(6) < 0.5)] for _ in range(n)]
    masks = [MORE.input_of(own, source=source) for own in crowd]
    sent = np.array([[mask >> j & 1 for j in range(8)] for mask in masks])
    assert sent.sum(axis=1).max() == 3 and not sent[:, 7].any()
    large = np.array([len(own) > 3 for own in crowd])
    assert (sent[:, 6] == large).all() and 0.2 < large.mean() < 0.5
    assert (sent[large].sum(axis=1) == 3).all()
    held = np.array([[item in own for item in APPS] for own in crowd])
    assert (sent[~large, :6] == held[~large]).all()
    told, true = sent[:, :6].mean(axis=0), held.mean(axis=0)
    assert (told <= true).all() and (true <= told + large.mean()).all()
    due = (held[large] * (2.0 / held[large].sum(axis=1, keepdims=True))).sum(axis=0)
    assert (np.abs(sent[large, :6].sum(axis=0) - due) < 6.0 * np.sqrt(due)).all()


def test_a_round_tells_the_share_of_those_with_more():
    """n = 20,000 by the channel itself: within 5.2 errors each of 8, 2e-6 by chance."""
    rng, n = np.random.default_rng(9), 20_000
    sets = [int(rng.choice([0, 0b11, 0b1000110, 0b10000000])) for _ in range(n)]
    channel = MORE.channel
    counts = channel.tally(channel.perturb(np.array(sets, dtype=np.uint8)[:, None], source=seeded(2)))
    found = MORE.estimator()(counts, n)
    truth = np.array([np.mean([each >> j & 1 for each in sets]) for j in range(8)])
    assert (np.abs(found.values - truth) < 5.2 * found.value_errors).all()
    release = released(MORE, counts, n, asked=n)
    assert [cell["label"] for cell in release[0]["values"]][-2:] == ["more than 3", "missing"]
    assert verify(MORE, *release, MORE.estimator()).differences == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("most = 3", "most = 1\nmore = true"),
        ("most = 3", 'most = 3\nmore = "yes"'),
        ('"mail", ', '"more than 3", '),
    ],
)
def test_what_cannot_tell_more_is_refused(old, new):
    text = SETS if "more = " in new else SETS.replace("most = 3", "most = 3\nmore = true")
    with pytest.raises(SurveyError, match="more"):
        Survey.parse(text.replace(old, new))


def test_bytes_with_another_word_than_more_are_refused():
    fields = msgpack.unpackb(MORE.canonical)
    for form in (["set", 3], ["set", 3, "less"], ["set", 3, "more", "more"], ["set", 2, "more"]):
        with pytest.raises((SurveyError, WireError)):
            Survey.from_canonical(msgpack.packb([*fields[:8], form, *fields[9:]]))


def test_sets_stand_last_in_a_list():
    labels = Survey.parse(LABELS)
    assert in_list_order([SURVEY, labels]) == [labels, SURVEY]


def test_no_other_form_takes_a_channel_of_sets_or_parts():
    """With an index as a bit mask, a device would send one set and its filter charge for another."""
    sets = {"kind": "set", "inputs": 9, "most": 2, "size": 2, "held": 2**63 - 2**60}
    halves = {"shares": [2**31] * 2, "subset": [1] * 2, "held": [3 * 2**30] * 2}
    parts = {"kind": "parts", "readings": [3, 3], "orders": [1, 1], "members": [1, 2], **halves}
    pair = [["a", "evolving", "integer", [0, 1]], ["b", "evolving", "integer", [0, 1]]]
    eight = ["a", "static", "integer", [0, 7]]
    categories = [["any", 8], ["missing", 1]]
    head, tail = ["hubbub-survey"], [[0, 60, 9], 0, 0, 1, 1, None]
    for channel in (sets, parts):
        asked = [
            [1, eight, [None, categories]],
            [2, pair, [["table", [[None, None]] * 2]]],
            [2, pair[:1], [["transition", None, None, 1, "pairs"]]],
        ]
        for layout, attributes, form in asked:
            fields = [
                *head,
                layout,
                "s",
                1,
                "t",
                attributes,
                9.0,
                dict(sorted(channel.items())),
                *form,
                *tail,
            ]
            with pytest.raises(SurveyError, match=r"sets|parts|tells single inputs"):
                Survey.from_canonical(msgpack.packb(fields))
            fields[7] = {"inputs": 9, "kind": "grr", "t": 5, "u": 2}
            assert Survey.from_canonical(msgpack.packb(fields)).channel.inputs == 9
