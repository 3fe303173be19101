"""A release held beside its public counts: by what reads no estimator first, then by this version's own."""

from __future__ import annotations

from typing import Any

from hubbub.checking import Checked, check_release, column_of, compare, slack_of
from hubbub.survey import AnyEstimator, Survey
from hubbub.wire import decode_counts
from hubbub_aggregator.release.curve import curve
from hubbub_aggregator.release.enrolment import FleetStatement
from hubbub_aggregator.release.estimates import METHOD, estimates
from hubbub_aggregator.release.round_release import LEVEL, Document


def verify(survey: Survey, document: Document, data: bytes, estimator: AnyEstimator | None = None) -> Checked:
    """Return what is right and wrong of a sealed release.

    Every number that `hubbub.checking` has a check of its own for is held beside that. The others, such as
    intervals of trees and of means, are made again by the estimator, where the counts are those it reads.

    Args:
        survey: The survey that the release should be of.
        document: The release.
        data: The bytes of its public counts.
        estimator: The survey's estimator, where it is at hand.
    """
    checked = check_release(survey, document, data)
    if checked.differences:
        return checked
    counts = decode_counts(data)
    stated = document["enrolment"]
    if stated is not None:
        fleet = FleetStatement({} if stated["asked"] is None else {"": stated["asked"]}, stated["budget"])
        enrolment = fleet.of("", counted=counts.n, enrolled=stated["enrolled"])
        checked.fact("enrolment.absent", stated["absent"], enrolment.absent)
        found = enrolment.document(document["values"], document["categories"])
        compare(checked, "enrolment.bias", stated["bias"], found["bias"])
    if counts.kind == "bins":
        estimate = (estimator or survey.estimator())(counts.cells, counts.n)
        asked = None if stated is None else stated["asked"]
        whole = curve(survey, estimate, LEVEL, method=METHOD)
        whole |= estimates(survey, estimate, level=LEVEL, method=METHOD, asked=asked)
        for part, numbers in whole.items():
            _compare(checked, part, document[part], numbers)
    else:
        known = checked.recomputed | checked.certified
        for part in ("values", "categories"):
            columns = {f"{part}.{key}" for cell in document[part][:1] for key in cell} - _facts(part)
            checked.unchecked += sorted(columns - known)
        checked.unchecked += sorted({f"mean.{key}" for key in document["mean"] or ()} - known)
    return checked


def _facts(part: str) -> set[str]:
    """Return the columns of cells that are no numbers."""
    return {f"{part}.label", f"{part}.category"}


def _compare(checked: Checked, part: str, said: Any, found: Any) -> None:  # noqa: ANN401 - of JSON
    """Compare a part with the estimator's, but for what `hubbub.checking` has held beside better."""
    if part in checked.recomputed:
        return
    if part in ("values", "categories"):
        for key in found[0] if found else ():
            name = f"{part}.{key}"
            if name not in checked.recomputed | _facts(part):
                columns = (column_of(cells, key) for cells in (said, found))
                same = checked.column(part, key, *columns, slack=slack_of(key))
                # An end that has its certificate was counted then.
                checked.again += 0 if name in checked.certified else same
    elif isinstance(said, dict) and isinstance(found, dict) and said.keys() == found.keys():
        for key in found:
            if f"{part}.{key}" not in checked.recomputed:
                compare(checked, f"{part}.{key}", said[key], found[key])
    else:
        compare(checked, part, said, found)
