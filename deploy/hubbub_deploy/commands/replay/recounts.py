"""The publication of recounts: beside a release, and only where nothing then shows a small group."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from hubbub import Survey
from hubbub.survey import number_of_round
from hubbub_aggregator import AggregatorError
from hubbub_aggregator.counting import OTHERS, RoundKey
from hubbub_aggregator.release import (
    UNKNOWN,
    AcceptedSizes,
    Document,
    Recount,
    Shown,
    cohort_of,
    why_no_recount,
)
from hubbub_aggregator.stores import RecountFolder
from hubbub_deploy.errors import DeployError


def publish(
    recounts: Mapping[RoundKey, bytes],
    released: Mapping[RoundKey, bytes],
    shown: Mapping[RoundKey, Shown],
    *,
    surveys: Mapping[bytes, Survey],
    folder: Path,
    say: Callable[[str], object],
) -> None:
    """Put recounts beside the releases that they are recounts of, and say which and which not.

    A round is left out where the archive has no release of it, or none of the issuers vouched for a report of
    it. So is one whose recount is against the rule of `hubbub_aggregator.release.disclosure`: whoever reads
    everything that was published of a round has all its differences.

    Args:
        recounts: The recounts.
        released: The archived releases that are whole.
        shown: What was shown of rounds before their release, as the archive has it.
        surveys: The surveys, by digest.
        folder: The folder of the node or dashboard.
        say: Told a line for every round that reports were left out of.

    Raises:
        DeployError: If a recount cannot be written, another one is there, or none is of use.
    """
    kept, published = RecountFolder(folder), 0
    for key in sorted(recounts.keys() & released.keys()):
        recount, release = json.loads(recounts[key]), json.loads(released[key])
        vouched = {line["issuer"]: line["accepted"] for line in release.get("issuers", ())}
        asked = _recount(recount)
        if not vouched.keys() & (asked.without | {OTHERS}):
            continue
        name = f"survey {surveys[key[0]].id!r}, round {number_of_round(key[1])}"
        others = [each for each in map(_recount, kept.of_round(key)) if each.without != asked.without]
        why = why_no_recount(
            shown.get(key, UNKNOWN),
            AcceptedSizes(release["devices"], {}, vouched),
            [*others, asked],
            compared=[line["issuer"] for line in release["issuers"] if line["p_value"] is not None],
            cohort=cohort_of(surveys[key[0]]),
        )
        if why is not None:
            say(f"{name}: not published; {why}")
            continue
        try:
            path = kept.put(recount)
        except AggregatorError as error:
            raise DeployError(str(error)) from error
        say(f"{name}: published as {path}")
        published += 1
    if not published:
        raise DeployError(f"{folder}: nothing is published; no release there can be recounted so")


def _recount(document: Document) -> Recount:
    return Recount(frozenset(document["recount"]["without_issuers"]), document["devices"])
