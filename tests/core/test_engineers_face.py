"""The face that a Python engineer meets: what everybody tries first works, and errors are Python's too."""

from __future__ import annotations

import importlib
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest
import surveys

import hubbub
from hubbub import Attribute, Estimate, Estimator, Survey, SurveyError, mechanisms
from hubbub.errors import AdvisedError, ParameterError, SurveyNotFoundError
from hubbub.estimation import estimator_for

GOLDEN = Path(__file__).parents[1] / "golden"
ALL = {
    path.stem: Survey.from_canonical(path.with_suffix(".bin").read_bytes())
    for path in GOLDEN.glob("survey-*.toml")
}


def some_estimate(survey: Survey) -> Estimate:
    shares = np.full(survey.channel.inputs, 1 / survey.channel.inputs)
    return survey.estimator().expected_estimate(shares, 5000)


def test_a_name_of_the_package_is_public_or_pythons_own() -> None:
    assert isinstance(hubbub.__version__, str)
    shown = [name for name in dir(hubbub) if not name.startswith("__")]
    assert {"attach", "lazy", "annotations"}.isdisjoint(shown)
    assert all(hasattr(hubbub, name) for name in shown)


@pytest.mark.parametrize("survey", ALL.values(), ids=ALL)
def test_symbols_are_estimated_as_their_counts_are(survey: Survey) -> None:
    inputs = np.arange(300) % survey.channel.inputs
    symbols = survey.channel.perturb(inputs)
    counts = survey.channel.tally(symbols)
    wanted, found = survey.estimator()(counts, 300), survey.estimate(symbols)
    assert found.n == 300
    np.testing.assert_array_equal(found.values, wanted.values)
    np.testing.assert_array_equal(found.category_errors, wanted.category_errors)
    one_by_one = [survey.channel.perturb(int(each)) for each in inputs]
    column = [np.frombuffer(each, np.uint8) if isinstance(each, bytes) else each for each in one_by_one]
    np.testing.assert_array_equal(
        survey.estimate(one_by_one).values, survey.estimate(np.array(column)).values
    )


@pytest.mark.parametrize("survey", ALL.values(), ids=ALL)
def test_symbols_that_the_channel_cannot_send_are_refused(survey: Survey) -> None:
    width = survey.channel.width
    wrong = [b"\xff" * (width + 1)] if width else [2**62]
    for symbols in ([], wrong, ["x"], [None], [-1], [1.5], [b"a", 1]):
        with pytest.raises(ParameterError, match="symbols must"):
            survey.estimate(symbols)


@pytest.mark.parametrize("survey", ALL.values(), ids=ALL)
def test_every_estimator_is_one_protocol_with_one_repr(survey: Survey) -> None:
    estimator = survey.estimator()
    assert isinstance(estimator, Estimator)
    assert repr(estimator) == f"<{type(estimator).__name__} of {survey.channel!r}>"


@pytest.mark.parametrize("survey", ALL.values(), ids=ALL)
def test_what_is_printed_of_an_estimate_is_short(survey: Survey) -> None:
    estimate = some_estimate(survey)
    assert len(repr(estimate)) < 200
    assert "5000" in repr(estimate) and repr(estimate).startswith("<Estimate of ")
    assert not [name for name in vars(hubbub.Estimate) if name == "_repr_pretty_"]


def told(estimate: Estimate) -> list[object]:
    """Everything that an estimate says, as text: an error where it has nothing to say."""
    found: list[object] = [repr(estimate)]
    asked = ("intervals", "simultaneous", "consistent", "smoothed", "empirical_bayes", "ranks", "cumulative")
    for name in (*asked, "poison_margin", "reach", "covariance", "of_crowd"):
        try:
            said = getattr(estimate, name)()
        except ParameterError as error:
            said = error
        found.append(repr(said.intervals() if isinstance(said, Estimate) else said))
    return found


@pytest.mark.parametrize("survey", ALL.values(), ids=ALL)
def test_an_estimate_says_the_same_in_another_process(survey: Survey) -> None:
    estimate = some_estimate(survey)
    fresh = pickle.loads(pickle.dumps(estimate))  # noqa: S301 - its own
    said = told(estimate)
    assert told(fresh) == said
    assert told(pickle.loads(pickle.dumps(estimate))) == said  # noqa: S301 - with what it has kept by now
    crowd = estimate.of_crowd(asked=9000)
    again = pickle.loads(pickle.dumps(crowd))  # noqa: S301 - as above
    assert repr(again.intervals()) == repr(crowd.intervals())


@pytest.mark.parametrize("survey", ALL.values(), ids=ALL)
def test_notebooks_show_a_table_of_a_survey_and_of_an_estimate(survey: Survey) -> None:
    page = survey._repr_html_()
    assert page.startswith("<table>") and page.count("<tr>") == page.count("</tr>") >= 5
    assert survey.id in page and survey.digest.hex() in page
    rows = some_estimate(survey)._repr_html_()
    assert rows.startswith("<table>") and len(rows) < 20_000


def test_text_of_an_author_is_no_markup_in_a_notebook() -> None:
    text = surveys.LABELS.replace("Self-rated health", "<script>alert(1)</script> & health")
    page = Survey.parse(text)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; health" in page


def test_all_missing_keys_of_a_survey_are_told_at_once_with_examples() -> None:
    with pytest.raises(SurveyError) as caught:
        Survey.parse('id = "a"\ntitle = "b"\n[schedule]\nround = "1d"\n', "mine.toml")
    said = str(caught.value)
    for key in ("version", "epsilon", "planned_devices", "schedule.start", "schedule.skew", "mechanism.name"):
        assert key in caught.value.key
    assert not {"id", "title", "schedule.round"} & set(caught.value.key.split(", "))
    assert "version = 1" in said and "epsilon = 1.0" in said
    assert "got" not in said and "\n" not in said


def test_the_examples_of_missing_keys_are_a_survey() -> None:
    with pytest.raises(SurveyError) as caught:
        Survey.parse("")
    tables: dict[str, list[str]] = {}
    keys = caught.value.key.split(", ")
    given = caught.value.rule.removeprefix("must be given, as in ").split("; ")
    assert len(keys) == len(given)
    for key, example in zip(keys, given, strict=True):
        tables.setdefault(key.rpartition(".")[0], []).append(example)
    lines = [line for table, found in tables.items() for line in ([f"[{table}]"] if table else []) + found]
    Survey.parse("\n".join(lines))


def test_a_missing_file_is_a_file_not_found(tmp_path) -> None:
    for error in (FileNotFoundError, SurveyNotFoundError, SurveyError, ValueError):
        with pytest.raises(error, match=r"absent\.toml") as caught:
            Survey.load(tmp_path / "absent.toml")
    assert caught.value.errno == 2
    with pytest.raises(SurveyError) as caught:
        Survey.load(tmp_path)
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("text", ["", "x = 1", surveys.LABELS.replace("epsilon = 1.0", "epsilon = 99")])
def test_an_error_comes_whole_out_of_another_process(text: str) -> None:
    with pytest.raises(SurveyError) as caught:
        Survey.parse(text, "a.toml")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - its own
    assert (type(again), str(again), again.__dict__) == (
        type(caught.value),
        str(caught.value),
        caught.value.__dict__,
    )


# Errors after which the same call may succeed as it stands.
RETRIED = {
    *(
        "TransportError",
        "LedgerLockedError",
        "UnreachableError",
        "LogError",
        "LogLockedError",
        "PeriodOverError",
        "NotDurableError",
    ),
    *(
        "PartitionMapGrownError",
        "SupersededError",
        "ClockDoubtError",
        "StoreConflictError",
        "LeaseLostError",
        "ArchiveFullError",
    ),
}
PACKAGES = [
    f"hubbub_{name}" for name in ["client", "topic", "collector", "aggregator", "deploy", "results", "lab"]
]


def test_every_error_says_whether_to_try_again() -> None:
    found: set[type[Exception]] = set()
    for package in ("hubbub", *PACKAGES):
        errors = importlib.import_module(f"{package}.errors")
        found |= {
            each
            for each in vars(errors).values()
            if inspect.isclass(each) and issubclass(each, Exception) and each.__module__ == errors.__name__
        }
    assert len(found) > 40
    assert [each.__name__ for each in found if not issubclass(each, AdvisedError)] == []
    assert {each.__name__ for each in found if each.advice == "retry"} == RETRIED


def test_an_attribute_says_what_is_protected() -> None:
    for make in (Attribute.integer, Attribute.labels, Attribute.number):
        kind = inspect.signature(make).parameters["kind"]
        assert kind.default is inspect.Parameter.empty


def test_a_channel_is_estimated_from_by_the_same_protocol() -> None:
    estimator: Estimator = estimator_for(mechanisms.grr(3, epsilon=1.0))
    assert repr(estimator).startswith("<InverseEstimator of <GRR of 3 inputs")
