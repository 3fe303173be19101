"""Where a report belongs, when partitions become more over time: a list that is only ever appended to.

A **span** is a topic with a fixed number of partitions, in force for rounds that start at or after a moment.
A round's reports all go where the span in force at its start says, however late they come: two copies of one
report always meet in one partition, and are counted once. Partitions are numbered through all spans, so that
a number means the same for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from hubbub.errors import ParameterError

# What a log may have in all topics together; far more than a broker bears.
MAX_PARTITIONS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Span:
    """A topic, and the rounds whose reports lie in it.

    Attributes:
        from_s: Rounds that start then or later, seconds since 1970, until the next span's.
        topic: The topic's name.
        partitions: How many of it are used; it never changes, whatever is added to the topic later.
        identity: What tells the topic from another of its name.
    """

    from_s: int
    topic: str
    partitions: int
    identity: str


@dataclass(frozen=True, slots=True)
class Layout:
    """All spans there have been.

    Attributes:
        spans: In the order in which they came into force; the first is in force from 0 on.

    Raises:
        ParameterError: If there is no span, the first does not begin at 0, they are not in order, or one has
            no partition.
    """

    spans: tuple[Span, ...]

    def __post_init__(self) -> None:
        starts = [span.from_s for span in self.spans]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise ParameterError(f"spans must begin at 0, each after the one before, got {starts}")
        for span in self.spans:
            if not 1 <= span.partitions <= MAX_PARTITIONS:
                raise ParameterError(
                    f"topic {span.topic}: partitions must be in [1, {MAX_PARTITIONS}], got {span.partitions}"
                )

    @classmethod
    def of(cls, partitions: int, *, topic: str = "", identity: str = "") -> Self:
        """The layout that never grew."""
        return cls((Span(0, topic, partitions, identity),))

    @property
    def partitions(self) -> int:
        """How many partitions there are in all."""
        return sum(span.partitions for span in self.spans)

    def grown(self, span: Span) -> Layout:
        """The layout with one more span.

        Raises:
            ParameterError: If it does not begin after all others.
        """
        return Layout((*self.spans, span))

    def continues(self, other: Layout) -> bool:
        """Whether this is `other`, or has grown from it."""
        return self.spans[: len(other.spans)] == other.spans

    def partitions_at(self, start_s: float) -> range:
        """The partitions of a round that starts at `start_s`, seconds since 1970."""
        first, found = 0, range(self.spans[0].partitions)
        for span in self.spans:
            if start_s >= span.from_s:
                found = range(first, first + span.partitions)
            first += span.partitions
        return found

    def place(self, partition: int) -> tuple[int, int]:
        """Which span a partition is of, and its number within that topic.

        Raises:
            ParameterError: If there is no such partition.
        """
        local = partition
        for number, span in enumerate(self.spans):
            if 0 <= local < span.partitions:
                return number, local
            local -= span.partitions
        raise ParameterError(f"partition must be in [0, {self.partitions}), got {partition}")

    def share(self, partition: int) -> tuple[int, int]:
        """A partition's number within its topic, and how many that topic has.

        Raises:
            ParameterError: If there is no such partition.
        """
        span, local = self.place(partition)
        return local, self.spans[span].partitions

    def window(self, partition: int) -> tuple[int, float]:
        """The starts of the rounds that lie in a partition: from the first, and below the second."""
        number, _ = self.place(partition)
        last = number + 1 == len(self.spans)
        return self.spans[number].from_s, float("inf") if last else self.spans[number + 1].from_s
