"""The loss of all answers about any 7 days: of answers that were given, and of a schedule at its worst."""

from __future__ import annotations

from itertools import product

import pytest
from surveys import START_S, small

from hubbub.survey.survey import Survey
from hubbub_client.surveys import window_loss, window_of
from hubbub_client.surveys.window import WINDOW_S

DAY_S = 86_400


def brute(answers: list[tuple[tuple[int, ...], float]]) -> float:
    return max(
        sum(loss for read, loss in answers if any(first <= each < first + WINDOW_S for each in read))
        for begins, _ in answers
        for first in begins
    )


def test_answers_within_any_seven_days_are_summed() -> None:
    days = [3, 4, 13, 25, 46]
    week = [((START_S + day * DAY_S,), 1.0) for day in days]
    assert window_loss(week) == 2.0
    # The same answers seen through twelve and twenty-four days, by rounds that are so much shorter.
    for length, most in ((12, 3.0), (24, 4.0)):
        assert window_loss([((day * 7 * DAY_S // length,), 1.0) for day in days]) == most
    assert window_loss([]) == 0.0
    mixed = [
        ((START_S + hours * 3600, START_S + (hours - 24) * 3600), 0.1 + hours % 7)
        for hours in (0, 160, 168, 169, 400, 567, 568)
    ]
    assert window_loss(mixed[::-1]) == pytest.approx(brute(mixed))


def test_a_round_that_begins_seven_days_later_is_of_another_window() -> None:
    assert window_loss([((0,), 1.0), ((WINDOW_S,), 1.0)]) == 1.0
    assert window_loss([((1,), 1.0), ((WINDOW_S,), 1.0)]) == 2.0


@pytest.mark.parametrize("rotation", [1, 2, 3, 5])
@pytest.mark.parametrize(("round_text", "round_s"), [("1d", DAY_S), ("2d", 2 * DAY_S), ("7d", 7 * DAY_S)])
def test_the_worst_slots_of_a_schedule_are_found(rotation: int, round_text: str, round_s: int) -> None:
    """Every way to draw the slots of ten rounds, beside the closed form."""
    text = small("visits", 'type = "integer"\nlow = 0\nhigh = 3', rounds=10, rotation=rotation)
    survey = Survey.parse(text.replace('round = "1d"', f'round = "{round_text}"'))
    cycles = -(-10 // rotation)
    drawn = product(range(rotation), repeat=cycles)
    worst = max(
        window_loss(
            [
                ((number * round_s,), survey.channel.epsilon)
                for cycle, slot in enumerate(slots)
                if (number := cycle * rotation + slot) < 10
            ]
            or [((0,), 0.0)]
        )
        for slots in drawn
    )
    assert window_of(survey) == pytest.approx(worst)


def test_what_stays_the_same_is_outside_of_every_window() -> None:
    text = small("visits", 'type = "integer"\nlow = 0\nhigh = 3', kind="static")
    assert window_of(Survey.parse(text)) == 0.0
