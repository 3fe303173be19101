"""Records that the decoder takes, with fields at the ends of their ranges."""

from __future__ import annotations

import random

import numpy as np
from counting_logs import MINUTE, report_id
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub.wire.record import MAX_MINUTE, NO_ROUND, ReportsRecord, SealRecord, Segment, encode_record
from hubbub.wire.report import MAX_ROUND

HEALTH, VISITED = Survey.parse(LABELS), Survey.parse(VISITS)
# A set survey, whose symbols are of another shape.
UNARY = Survey.parse(LABELS.replace('name = "grr"', 'name = "unary"').replace("self-rated-health", "sets"))
BOUND = 2**31

EDGES = (0, 1, 2**31 - 1)
ROUNDS = (NO_ROUND, 0, 1, 2, 3, MAX_ROUND)
MINUTES = (0, 1, MINUTE, MINUTE + 10**6, MAX_MINUTE)
IDS = (bytes(16), b"\xff" * 16, b"\x01" + bytes(15), bytes(8) + b"\x01" * 8, report_id(1))
DIGESTS = (HEALTH.digest, VISITED.digest, UNARY.digest, bytes(16), b"\xff" * 16)


def extreme(dice: random.Random) -> bytes:
    """A record that the decoder takes, with every field at an end of its range or in the middle."""
    if dice.random() < 0.15:
        return encode_record(SealRecord(dice.choice(DIGESTS), dice.choice(ROUNDS[1:])))
    segments, left = [], BOUND
    for _ in range(dice.choice((0, 1, 1, 2, 5))):
        number, n = dice.choice(ROUNDS), dice.choice((0, 1, 3, 40))
        n = 0 if number == NO_ROUND else n
        if dice.random() < 0.3:
            symbols = np.frombuffer(dice.randbytes(n * (w := dice.choice((1, 2, 2**15)))), np.uint8).reshape(
                n, w
            )
        else:
            symbols = np.array(
                [dice.choice((0, 1, 4, 255, 2**16, 2**32 - 1)) for _ in range(n)], dtype=np.uint32
            )
        tallies = [
            min(dice.choice(EDGES), max(0, left - 50) // 4) if dice.random() < 0.4 else 0 for _ in range(4)
        ]
        names = ("invalid", "early", "late", "over_quota")
        left -= n + sum(tallies)
        ids = b"".join(dice.choice(IDS) for _ in range(n))
        refused = dict(zip(names, tallies, strict=True))
        segments.append(Segment(dice.choice(DIGESTS), number, ids, symbols, n + sum(tallies), refused))
    unknown = max(0, min(dice.choice(EDGES), left))
    return encode_record(ReportsRecord(dice.choice(MINUTES), tuple(segments), unknown))
