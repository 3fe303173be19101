"""The window number: what all answers of a life tell about what changed within some 7 days.

For any two records that differ only in values that evolve, and only in those read within 7 days, all answers
of a life are at most e^loss times as probable under one as under the other: every other answer reads the
same. So the loss of a window is the sum over the answers that read a round which begins in it, realised where
they were given, else at their worst. What stays the same about a person is outside of it.

It is not what somebody learns who watches for 7 days: whether a survey is joined depends on older answers.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final

from hubbub.survey import Survey
from hubbub_client.surveys.rotation import cycles_of
from hubbub_client.surveys.schedule import is_static

WINDOW_S: Final = 7 * 86_400
"""The length of a window, seconds."""


def window_loss(answers: Iterable[tuple[Sequence[int], float]]) -> float:
    """Return the largest sum of losses of answers that read a round which begins within one window, nats.

    Args:
        answers: Of each, when the rounds begin whose values it reads, seconds since 1970, and its loss, nats.
    """
    read = sorted((begins_s, place, loss) for place, (each, loss) in enumerate(answers) for begins_s in each)
    inside: deque[tuple[int, int, float]] = deque()
    times: Counter[int] = Counter()  # how many rounds that an answer reads are inside
    most = total = 0.0
    for row in read:
        inside.append(row)
        times[row[1]] += 1
        total += row[2] if times[row[1]] == 1 else 0.0
        while inside[0][0] <= row[0] - WINDOW_S:
            _, place, loss = inside.popleft()
            times[place] -= 1
            total -= 0.0 if times[place] else loss
        most = max(most, total)
    return most


def read_rounds_s(survey: Survey, number: int) -> tuple[int, ...]:
    """Return when the rounds begin whose values an answer in a round reads: of a transition two."""
    rounds = (number, number - survey.form.lag) if survey.form.lag else (number,)
    return tuple(map(survey.round_start_s, rounds))


def window_of(survey: Survey) -> float:
    """Return the most that answers to a survey cost within one window, nats, whatever slots a device draws.

    Of L rounds, 2 or more, a rotation of w asks floor((L - 2) / w) + 2 at most: two cycles may ask at their
    common edge. A transition reads two rounds, so that at most twice as many read a window.
    """
    if is_static(survey):
        return 0.0
    rounds, rotation = min(survey.rounds, -(-WINDOW_S // survey.round_s)), survey.rotation
    most = rounds if rounds < 2 else min(rounds, (rounds - 2) // rotation + 2)
    most *= len(read_rounds_s(survey, 0))
    return survey.channel.epsilon * min(most, cycles_of(survey.rounds, rotation))
