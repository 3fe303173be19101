"""The way past records that are gone for good: only on an operator's explicit word, and never in silence.

Retention that passed the store, or a store that was lost too late to rebuild, leaves offsets that nobody can
count. Counting goes on past them only by `skip_lost`, which writes down which offsets they were. Nobody knows
how many reports lay in them, so no tally can name them. A release of a round that may have lost some says
which offsets are missing, and its accounting holds for all that was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hubbub.survey import Survey
from hubbub_aggregator.counting.lost_offsets import LostRange
from hubbub_aggregator.counting.partition import Change, PartitionState


def skip_lost(state: PartitionState, offset: int, published: Iterable[Survey], *, now_s: int) -> Change:
    """Return the change that continues at `offset` without the records before it; `state` is not changed.

    Args:
        state: The partition so far.
        offset: The next offset to apply.
        published: Surveys whose records may be among what is lost.
        now_s: The time of the operator's word, seconds since 1970.

    Raises:
        ValueError: If nothing lies between the state's offset and this one.
    """
    if offset <= state.offset:
        raise ValueError(f"offset must be past {state.offset}, which comes next, got {offset}")
    return Change(
        previous=state.offset,
        offset=offset,
        surveys={survey.digest: survey for survey in published if survey.digest not in state.surveys},
        rounds={},
        unknown=0,
        lost=(LostRange(state.offset, offset, now_s),),
    )


def lost_of(survey: Survey, number: int, states: Mapping[int, PartitionState]) -> list[dict[str, int]]:
    """Return the offsets that a round may have lost, as JSON types: partition, from, until (exclusive)."""
    found = []
    for partition, state in sorted(states.items()):
        known = state.rounds.get((survey.digest, number))
        for lost in state.lost:
            if lost.touches(survey, number, None if known is None else known.sealed_at):
                found.append({"partition": partition, "from": lost.first, "until": lost.end})
    return found
