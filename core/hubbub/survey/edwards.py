"""The check that bytes are an Ed25519 key: a point, and not of small order, for which anybody can sign.

Source: RFC 8032, sections 5.1 and 5.1.3. A signature (R, S) is good if [S]B = R + [k]A: with A of order 8 or
less, S = 0 and a fitting R of small order sign one message in eight at least.
"""

from __future__ import annotations

from typing import Final

P: Final = 2**255 - 19
D: Final = -121665 * pow(121666, -1, P) % P
_ROOT_OF_MINUS_1: Final = pow(2, (P - 1) // 4, P)

Point = tuple[int, int]


def is_key(data: bytes) -> bool:
    """Return whether 32 bytes are a point of the curve, in its one encoding, of large order.

    Args:
        data: A public key, 32 bytes. It is public: nothing here takes the same time for every key.
    """
    point = _decoded(data)
    for _ in range(3):
        if point is None:
            return False
        point = _doubled(point)
    return point is not None and point != (0, 1)


def _decoded(data: bytes) -> Point | None:
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * _ROOT_OF_MINUS_1 % P
    if x * x % P != square or (x == 0 and sign):
        return None
    return (x if x & 1 == sign else P - x), y


def _doubled(point: Point) -> Point:
    """Return twice a point (RFC 8032, 5.1: the law is complete, so no denominator is 0)."""
    x, y = point
    product = D * x * x * y * y % P
    return (
        2 * x * y * pow(1 + product, -1, P) % P,
        (y * y + x * x) * pow(1 - product, -1, P) % P,
    )
