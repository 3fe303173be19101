"""The slots of a rotating survey: in which round of a cycle a device answers, drawn from its own secret.

The rounds of a survey are cut into cycles of `rotation` rounds; the last may be shorter. In each cycle a
device answers in one round alone, at its slot, which is uniform and independent of every value. A slot beyond
the survey's end, or before the device joined, is not made up for: drawn over what is left, late rounds would
see more of the new devices than of the old.

A secret stands for the slots instead of a row each, because slots that nothing was reserved for must not be
drawn again either. What it draws is no part of the privacy guarantee: one answer a cycle costs its epsilon,
whether or not anybody knows in which round it was given.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

SEED_BYTES: Final = 32
_TOSS_BYTES: Final = 4
_WORD_BYTES: Final = 8
_WORDS: Final = 2**64
_PLACE_BYTES: Final = 4


def slot_in_cycle(seed: bytes, cycle: int, rotation: int) -> int:
    """Return the round within a cycle that a device answers, from 0 to rotation - 1.

    It is the first word below the largest multiple of `rotation`, modulo `rotation`. Words i = 0, 1, ... are
    BLAKE2b of 8 bytes, with the seed as its key, over cycle and i, 4 bytes each, all big-endian.

    Args:
        seed: The secret of the device's enrolment, SEED_BYTES long.
        cycle: Which cycle, from 0.
        rotation: Rounds of a cycle.
    """
    end = _WORDS // rotation * rotation
    word, place = end, 0
    while word >= end:
        data = cycle.to_bytes(_PLACE_BYTES, "big") + place.to_bytes(_PLACE_BYTES, "big")
        word = int.from_bytes(blake2b(data, key=seed, digest_size=_WORD_BYTES).digest(), "big")
        place += 1
    return word % rotation


def coin_toss(seed: bytes, place: int) -> int:
    """Return what a device's public coin shows, 0 to 2^32 - 1: which part of a bundle it answers.

    It is BLAKE2b of 4 bytes, with the seed as its key, over b"part" and the place, 8 bytes, big-endian. The
    seed is stored with the enrolment, before any value is read; so the coin is tossed once, whatever happens
    to the answer.

    Args:
        seed: The secret of the device's enrolment, SEED_BYTES long.
        place: The round that the answer is for, from 1; 0 for the one answer of a survey of static
            attributes.
    """
    data = b"part" + place.to_bytes(8, "big")
    return int.from_bytes(blake2b(data, key=seed, digest_size=_TOSS_BYTES).digest(), "big")


def drawn_rounds(seed: bytes, first: int, rounds: int, rotation: int) -> tuple[int, ...]:
    """Return the rounds that a device answers, from `first` on, rising.

    Args:
        seed: The secret of the device's enrolment.
        first: The first round that can still be answered, below `rounds`.
        rounds: Rounds of the survey.
        rotation: Rounds of a cycle.
    """
    cycles = range(first // rotation, cycles_of(rounds, rotation))
    drawn = (cycle * rotation + slot_in_cycle(seed, cycle, rotation) for cycle in cycles)
    return tuple(number for number in drawn if first <= number < rounds)


def cycles_of(rounds: int, rotation: int) -> int:
    """Return how many cycles a survey of `rounds` rounds has, the last one whole or not."""
    return -(-rounds // rotation)
