"""A release held beside its public counts: by what reads no estimator first, then by this version's own."""

from __future__ import annotations

from typing import Any, Final

from hubbub.checking import Checked, check_release, column_of, compare, guarded, slack_of
from hubbub.survey import AnyEstimator, Survey
from hubbub.wire import decode_counts
from hubbub_aggregator.release.enrolment import FleetStatement
from hubbub_aggregator.release.estimates import curve, estimates
from hubbub_aggregator.release.round_release import LEVEL, Document, require_method

_FACTS: Final = {"label", "category", "tree_level"}
"""Columns of cells that are no numbers: they were held beside the survey."""


def verify(
    survey: Survey, document: Document, data: bytes | None, estimator: AnyEstimator | None = None
) -> Checked:
    """Return what is right and wrong of a sealed release.

    Every number that `hubbub.checking` has a check of its own for is held beside that. The others, such as
    intervals of trees and of means, are made again by the estimator, where the counts are those it reads.

    Args:
        survey: The survey that the release should be of.
        document: The release, or the same with what the read API says beside it.
        data: The bytes of its public counts; None of a round with too few devices.
        estimator: The survey's estimator, where it is at hand.

    Raises:
        ParameterError: If the release is of another method than this version's.
    """
    require_method(document)
    checked = check_release(survey, document, data)
    if data is not None and not checked.differences:
        with guarded(checked):
            _check_again(checked, survey, document, data, estimator)
    return checked


def _check_again(
    checked: Checked, survey: Survey, document: Document, data: bytes, estimator: AnyEstimator | None
) -> None:
    counts, stated, asked = decode_counts(data), document["enrolment"], None
    if stated is not None:
        asked = stated["asked"]
        fleet = FleetStatement({} if asked is None else {"": asked}, stated["budget"])
        enrolment = fleet.of(survey, counted=counts.n, enrolled=stated["enrolled"])
        checked.fact("enrolment.absent", stated["absent"], enrolment.absent)
        found = enrolment.document(document["values"], document["categories"])
        compare(checked, "enrolment.bias", stated["bias"], found["bias"])
    if counts.kind == "bins":
        estimate = (estimator or survey.estimator())(counts.cells, counts.n)
        whole = curve(survey, estimate, LEVEL, asked=asked)
        whole |= estimates(survey, estimate, level=LEVEL, asked=asked)
        for part, numbers in whole.items():
            _compare(checked, part, document[part], numbers)
        return
    # Squares of scores are in the bins alone: without them no estimator fills what has no check of its own.
    for part in ("values", "categories", "mean", "poison_margin"):
        stated = document[part]
        keys = (stated[0] if isinstance(stated, list) and stated else stated) or ()
        known = checked.recomputed | checked.certified | {f"{part}.{key}" for key in _FACTS}
        checked.unchecked += [f"{part}.{key}" for key in keys if f"{part}.{key}" not in known]


def _compare(checked: Checked, part: str, said: Any, found: Any) -> None:  # noqa: ANN401 - of JSON
    """Compare a part with the estimator's, but for what `hubbub.checking` has held beside better."""
    if part in checked.recomputed:
        return
    if part in ("values", "categories"):
        for key in found[0] if found else ():
            name = f"{part}.{key}"
            if name not in checked.recomputed and key not in _FACTS:
                columns = (column_of(cells, key) for cells in (said, found))
                same = checked.column(part, key, *columns, slack=slack_of(key))
                # An end that has its certificate was counted then.
                checked.again += 0 if name in checked.certified else same
    elif isinstance(said, dict) and isinstance(found, dict):
        for key in found:
            if f"{part}.{key}" not in checked.recomputed:
                compare(checked, f"{part}.{key}", said[key], found[key])
    else:
        compare(checked, part, said, found)
