"""The limit on reports a second of one permit: what a bucket gives, over any order of uploads."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from hubbub_collector.intake import BURST_S, RateLimit


class Ticks:
    """A clock that a test turns on."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_bucket_gives_ten_seconds_worth_and_then_the_rate() -> None:
    clock = Ticks()
    limit = RateLimit(2.0, clock)
    assert [limit.take({"a": 4}) for _ in range(5)] == [None] * 5
    assert limit.take({"a": 1}) == ("a", 1)
    assert limit.take({"b": 1}) is None
    clock.now_s += 1.0
    assert limit.take({"a": 7}) is None  # whole, though only 2 are there
    assert limit.take({"a": 1}) == ("a", 3)  # 5 are owed: 2.5 s, and then there is something
    clock.now_s += 3.0
    assert limit.take({"a": 1}) is None


def test_an_upload_of_two_permits_takes_from_both_or_none() -> None:
    limit = RateLimit(1.0, Ticks())
    assert limit.take({"a": 10}) is None
    assert limit.take({"a": 1, "b": 9}) == ("a", 1)
    assert limit.take({"b": 10}) is None and limit.take({"b": 1}) == ("b", 1)


def test_without_a_rate_nothing_is_refused_or_remembered() -> None:
    limit = RateLimit(0.0, Ticks())
    assert all(limit.take({"a": 10**9}) is None for _ in range(3))


@example(0.1, [(0.0, 2), (3.0, 1)])  # 0.7 are owed, and 7 s times 0.1 are a hair less
@given(
    st.floats(0.1, 1e4),
    st.lists(st.tuples(st.floats(0.0, 30.0), st.integers(1, 200)), max_size=40),
)
def test_no_order_of_uploads_gets_more_than_the_rate_and_a_burst(
    rate: float, steps: list[tuple[float, int]]
) -> None:
    """Taken in t seconds: at most rate t, ten seconds' worth, and the upload that went below zero."""
    clock = Ticks()
    limit, taken, waited = RateLimit(rate, clock), 0, 0.0
    for pause_s, reports in steps:
        clock.now_s += pause_s
        waited += pause_s
        refused = limit.take({"a": reports})
        if refused is None:
            taken += reports
            assert taken <= rate * (waited + BURST_S) * (1 + 1e-9) + reports
        else:  # what it was told is enough
            clock.now_s += refused[1]
            waited += refused[1]
            assert limit.take({"a": 0}) is None
