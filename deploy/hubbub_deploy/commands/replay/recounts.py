"""The publication of recounts: beside a release, and only where their difference shows no small group."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from hubbub import Survey
from hubbub_aggregator import AggregatorError
from hubbub_aggregator.counting import OTHERS, RoundKey
from hubbub_aggregator.stores import RecountFolder
from hubbub_deploy.errors import DeployError


def publish(
    recounts: Mapping[RoundKey, bytes],
    released: Mapping[RoundKey, bytes],
    *,
    surveys: Mapping[bytes, Survey],
    folder: Path,
    say: Callable[[str], object],
) -> None:
    """Put recounts beside the releases that they are recounts of, and say which and which not.

    A round is left out where the archive has no release of it, or none of the issuers vouched for a report of
    it. So is one whose recount would differ from the release, or from another recount, by fewer reports than
    the survey's minimum cohort: whoever reads both has the difference.

    Args:
        recounts: The recounts.
        released: The archived releases that are whole.
        surveys: The surveys, by digest.
        folder: The folder of the node or dashboard.
        say: Told a line for every round that reports were left out of.

    Raises:
        DeployError: If a recount cannot be written, another one is there, or none is of use.
    """
    kept, published = RecountFolder(folder), 0
    for key in sorted(recounts.keys() & released.keys()):
        recount = json.loads(recounts[key])
        without = set(recount["recount"]["without_issuers"])
        vouched = {line["issuer"]: line["accepted"] for line in json.loads(released[key]).get("issuers", ())}
        if not vouched.keys() & (without | {OTHERS}):
            continue
        survey = surveys[key[0]]
        name = f"survey {survey.id!r}, round {key[1] + 1}"
        others = [set(), *(set(each["recount"]["without_issuers"]) for each in kept.of_round(key))]
        fewest = min(_apart(vouched, without, other) for other in others if other != without)
        if fewest < survey.minimum_cohort:
            say(
                f"{name}: not published; a recount must differ from the release, and from other recounts, by "
                f"at least the minimum cohort of {survey.minimum_cohort} reports, got {fewest}"
            )
            continue
        try:
            path = kept.put(recount)
        except AggregatorError as error:
            raise DeployError(str(error)) from error
        say(f"{name}: published as {path}")
        published += 1
    if not published:
        raise DeployError(f"{folder}: nothing is published; no release there can be recounted so")


def _apart(vouched: Mapping[str, Any], one: Collection[str], other: Collection[str]) -> int:
    """Return how many reports of a round two recounts differ by, those that no name is known of left out."""
    return sum(int(vouched.get(issuer, 0)) for issuer in set(one) ^ set(other))
