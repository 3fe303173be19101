"""The reports about each part of a bundle, beside what the public coin gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import PART_ALARM, SampledParts, part_chances
from hubbub.survey import Survey

Document = dict[str, Any]


def part_lines(survey: Survey, counts: NDArray[np.int64] | None) -> list[Document]:
    """Return a line per part as JSON types: its attributes, reports, and the chance of so many or more.

    The line of an interaction says so: a table of the same attributes may be a part, too.

    Args:
        survey: A bundle.
        counts: The counts of a round that shows them; None of one that does not.
    """
    if counts is None:
        return []
    channel = cast(SampledParts, survey.channel)
    reports, _ = channel.split(counts)
    n = int(reports.sum())
    return [
        {
            "attributes": [survey.attributes[member].id for member in part.members],
            **({"tells": "interaction"} if part.classes > 1 else {}),
            "reports": int(many),
            "expected": n * part.share / 2**32,
            "p_value": chance,
        }
        for part, many, chance in zip(
            channel.parts, reports.tolist(), part_chances(channel, reports).tolist(), strict=True
        )
    ]


def part_alerts(release: Mapping[str, Any]) -> list[Document]:
    """Return the parts with more reports than honest coins give, as JSON types, the least likely first."""
    found = [line for line in release.get("parts", ()) if line["p_value"] <= PART_ALARM]
    return [
        {
            "kind": "part",
            "family": "parts",
            "label": " / ".join(line["attributes"]) + (", interaction" if "tells" in line else ""),
            "statistic": line["p_value"],
            "threshold": PART_ALARM,
            "rate": PART_ALARM * len(release["parts"]),
        }
        for line in sorted(found, key=lambda line: (line["p_value"], line["attributes"]))
    ]
