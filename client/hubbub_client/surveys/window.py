"""The window number: what all answers of a life tell about what changed within some 7 days.

For any two records that differ only in values that evolve, and only in those read within 7 days, all answers
of a life are at most e^loss times as probable under one as under the other: every other answer reads the
same. So the loss of a window is the sum over the answers whose round begins in it, realised where they were
given, else at their worst. What stays the same about a person is outside of it.

It is not what somebody learns who watches for 7 days: whether a survey is joined depends on older answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from hubbub.survey import Survey
from hubbub_client.surveys.rotation import cycles_of
from hubbub_client.surveys.schedule import is_static

WINDOW_S: Final = 7 * 86_400
"""The length of a window, seconds."""


def window_loss(answers: Iterable[tuple[int, float]]) -> float:
    """Return the largest sum of losses of answers whose rounds begin within one window, nats.

    Args:
        answers: Of each, when its round begins, seconds since 1970, and its loss, nats.
    """
    most = total = 0.0
    inside: deque[tuple[int, float]] = deque()
    for begins_s, loss in sorted(answers):
        inside.append((begins_s, loss))
        total += loss
        while inside[0][0] <= begins_s - WINDOW_S:
            total -= inside.popleft()[1]
        most = max(most, total)
    return most


def window_of(survey: Survey) -> float:
    """Return the most that answers to a survey cost within one window, nats, whatever slots a device draws.

    Of L rounds, 2 or more, a rotation of w asks floor((L - 2) / w) + 2 at most: two cycles may ask at their
    common edge.
    """
    if is_static(survey):
        return 0.0
    rounds, rotation = min(survey.rounds, -(-WINDOW_S // survey.round_s)), survey.rotation
    most = rounds if rounds < 2 else min(rounds, (rounds - 2) // rotation + 2)
    return survey.channel.epsilon * min(most, cycles_of(survey.rounds, rotation))
