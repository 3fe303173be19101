"""The load that a survey puts on its device for as long as the ledger is kept: time to open it, and memory.

A list of a hundred kilobytes can announce surveys whose divergences take hours, and every opening works them
out anew. So both are bounded from a survey's public facts, before anything of it is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from hubbub.channels import MAX_BLOCKS
from hubbub.survey import Survey
from hubbub_client.surveys.schedule import is_static

if TYPE_CHECKING:
    from hubbub.survey import Bundle

_STEP: Final = 8
"""Passes over every pair of blocks that a reservation and its answer make where values are shared."""

_APART: Final = 2
"""Readings that the filter has in place of all values of a coordinate that one survey keeps for itself."""


class SurveyLoad(NamedTuple):
    """A number of operations and of bytes, both upper bounds.

    Attributes:
        work: Comparisons of two weights that reserving and recording take.
        held: Bytes that the survey and its divergence take in memory.
    """

    work: int
    held: int


def survey_load(survey: Survey, slots: int) -> SurveyLoad:
    """Return the load of a survey with so many answers reserved, the first of them included.

    Args:
        survey: The survey.
        slots: Answers that cost budget, >= 1.
    """
    channel = survey.channel
    inputs = survey.form.held_inputs(channel)
    domain = inputs if survey.mapping is None else survey.mapping.size
    if survey.form.samples_parts:  # the map of the largest part, over whole domains
        domain = max(inputs, *cast("Bundle", survey.form).part_sizes(channel))
    # Of what is kept apart the filter has two readings; its map is read all the same.
    tables = domain if survey.form.apart else 8 * (inputs + domain)
    return SurveyLoad(
        channel.block_work + slots * answer_work(survey),
        8 * (tables + channel.most_blocks**2) + 2 * len(survey.canonical),
    )


def answer_work(survey: Survey) -> int:
    """Return the comparisons that one answer of a survey takes: its reservation and its record.

    Those of a memoised value go over all that is known of it, whose blocks are at most its values.
    """
    if survey.form.apart:
        return _STEP * _APART
    if survey.form.samples_parts and is_static(survey):
        return _STEP * max(map(_shared_work, cast("Bundle", survey.form).part_sizes(survey.channel)))
    if survey.mapping is None or not is_static(survey):
        return _STEP * survey.form.held_inputs(survey.channel)
    return _STEP * _shared_work(survey.mapping.size)


def _shared_work(values: int) -> int:
    """Return the cells and pairs of blocks of so many combinations of stored values."""
    return values + min(values, MAX_BLOCKS) ** 2
