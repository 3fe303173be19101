"""The slots of a rotating survey: the stated vectors, their law, and what is reserved and answered."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from devices import changed
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from surveys import LABELS, START_S

from hubbub.survey.survey import Survey
from hubbub_client.surveys.rotation import SEED_BYTES, slot_in_cycle
from hubbub_client.surveys.schedule import due, is_drawn, most_answers, scheduled_answers

STATED = bytes(range(SEED_BYTES))
DAY_S = 86_400


@cache
def rotating(rounds: int, rotation: int) -> Survey:
    return changed(LABELS.replace("rounds = 3", f"rounds = {rounds}\nrotation = {rotation}"))


@pytest.mark.parametrize(
    ("rotation", "slots"),
    [(12, [0, 5, 7, 11, 0, 4, 3, 6, 1, 2]), (7, [5, 0, 3, 1, 4, 1, 1, 6, 1, 0])],
)
def test_a_seed_draws_the_stated_slots(rotation: int, slots: list[int]) -> None:
    assert [slot_in_cycle(STATED, cycle, rotation) for cycle in range(10)] == slots


def test_words_too_large_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2^64 words the last 2^64 mod 12 = 4 would make the first four slots likelier."""
    words = [2**64 - 4, 2**64 - 1, 2**64 - 5]
    asked = []

    class Given:
        def __init__(self, data: bytes, *, key: bytes, digest_size: int) -> None:
            assert (key, digest_size) == (STATED, 8)
            asked.append(data)

        def digest(self) -> bytes:
            return words[len(asked) - 1].to_bytes(8, "big")

    monkeypatch.setattr("hubbub_client.surveys.rotation.blake2b", Given)
    assert slot_in_cycle(STATED, 258, 12) == (2**64 - 5) % 12
    assert asked == [bytes([0, 0, 1, 2, 0, 0, 0, place]) for place in range(3)]


def test_slots_are_uniform_and_those_of_two_cycles_independent() -> None:
    """60,000 seeds, chi-square over 12 slots and over 144 pairs: each fails by chance once in 10^6 times."""
    source = np.random.default_rng(31)
    pairs = Counter(
        (slot_in_cycle(seed, 3, 12), slot_in_cycle(seed, 4, 12))
        for seed in (source.bytes(SEED_BYTES) for _ in range(60_000))
    )
    one = [sum(count for (slot, _), count in pairs.items() if slot == each) for each in range(12)]
    both = [pairs[slot, other] for slot in range(12) for other in range(12)]
    assert stats.chisquare(one).pvalue > 1e-6
    assert stats.chisquare(both).pvalue > 1e-6


@given(st.binary(min_size=32, max_size=32), st.integers(1, 60), st.integers(2, 70), st.data())
def test_a_schedule_has_one_round_of_every_cycle_that_is_left(
    seed: bytes, rounds: int, rotation: int, data: st.DataObject
) -> None:
    """Counted round by round: drawn ones lie after the last closed, at most one in a cycle, at its slot."""
    survey = rotating(rounds, rotation)
    last_closed = data.draw(st.integers(-1, rounds - 1))
    drawn = scheduled_answers(survey, last_closed, seed)
    slots = [slot_in_cycle(seed, number // rotation, rotation) for number in range(rounds)]
    wanted = [n for n in range(last_closed + 1, rounds) if n % rotation == slots[n]]
    assert list(drawn) == wanted == [n for n in range(last_closed + 1, rounds) if is_drawn(survey, n, seed)]
    touched = {number // rotation for number in range(last_closed + 1, rounds)}
    assert len(drawn) <= most_answers(survey, last_closed) == len(touched)


def test_the_most_answers_are_the_cycles_left_and_not_the_rounds_left_over_the_rotation() -> None:
    """Two rounds on either side of a cycle's edge can both be drawn."""
    survey = rotating(13, 12)
    seeds = (number.to_bytes(SEED_BYTES, "big") for number in range(10_000))
    assert any(scheduled_answers(survey, 10, seed) == (11, 12) for seed in seeds)
    assert (most_answers(survey, 10), most_answers(survey, 11), most_answers(survey, 12)) == (2, 1, 0)


def test_only_the_drawn_round_is_due_and_a_missed_one_comes_back_with_the_clock_alone() -> None:
    survey = rotating(36, 12)  # of the stated seed: rounds 0, 17 and 31

    def at(number: int) -> int | None:
        return due(survey, -1, answered, START_S + number * DAY_S + 5.0, STATED)

    answered: set[int] = set()
    assert [number for number in range(36) if at(number) is not None] == [0, 17, 31]
    answered.add(17)
    assert [number for number in range(36) if at(number) is not None] == [0, 31]
    assert due(survey, 5, set(), START_S + 5.0, STATED) is None  # over when the device joined


def test_late_joiners_answer_as_often_in_every_round() -> None:
    """240 devices join at each of 12 rounds: in a round, each of those there answers with probability 1/12.

    Round r has 20 (r + 1) expected answers; 5 standard deviations are passed once in 10^5 times or less.
    """
    survey, source, counts = rotating(12, 12), np.random.default_rng(7), [0] * 12
    for last_closed in range(-1, 11):
        for _ in range(240):
            for number in scheduled_answers(survey, last_closed, source.bytes(SEED_BYTES)):
                counts[number] += 1
    for number, count in enumerate(counts):
        expected = 20 * (number + 1)
        assert abs(count - expected) < 5 * (expected * 11 / 12) ** 0.5, number


def test_a_cycle_costs_one_answer_whether_or_not_its_slot_is_seen() -> None:
    """Enumerated in rationals, w = 3, two values of ratio 3: what one and what every round's answer tells."""
    true, other = Fraction(3, 4), Fraction(1, 4)

    def says(value: int, answer: int) -> Fraction:
        return true if value == answer else other

    one, two = (0, 0, 0), (1, 1, 1)
    seen = [
        sum((says(one[slot], answer) * Fraction(1, 3),)) / sum((says(two[slot], answer) * Fraction(1, 3),))
        for slot in range(3)
        for answer in range(2)
    ]
    assert max(seen) == 3
    every = true**3 / other**3
    assert every == 27
