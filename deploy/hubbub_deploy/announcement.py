"""The lines that a node prints when it is ready: every survey, when it begins and ends, where its page is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hubbub.survey import Survey, index_of_round, survey_state
from hubbub_client import owner_page


def announcement(url: str, surveys: Iterable[Survey], snapshot: Mapping[str, Any], now_s: float) -> str:
    """Return what a node prints; its first line is the address.

    Args:
        url: Where it listens.
        surveys: What it serves.
        snapshot: What its page shows, with the rounds counted before it started.
        now_s: Its clock, seconds since 1970.
    """
    counted = {entry["digest"]: entry["rounds"] for entry in snapshot["surveys"]}
    lines = [f"Hubbub node: {url}"]
    for survey in surveys:
        digest = survey.digest.hex()
        accepted = {
            index_of_round(each["round"]): each["accounting"]["accepted"] for each in counted.get(digest, ())
        }
        state = survey_state(survey, now_s, accepted=accepted)
        lines += [
            f"  {survey.id} version {survey.version}: {state.words}",
            f"    {owner_page.schedule(survey)}",
            f"    {page_of(url, digest)}",
        ]
    return "\n".join(lines)


def page_of(url: str, digest: str) -> str:
    """Return the address of a survey's page.

    Args:
        url: Where the node or the dashboard listens.
        digest: The survey's, in hexadecimal.
    """
    return f"{url}/?survey={digest}"
