"""The partition map: where reports belong as partitions grow, in a list that is only appended to.

A **topic period** is a topic with a fixed number of partitions, in force for rounds that start at or after a
moment. All reports of a round go into the topic in force at its start, however late they come: two copies of
one report always meet in one partition, and are counted once. Partitions are numbered through all periods, so
that a number means the same for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from hubbub.errors import ParameterError

# Partitions of a log in all topics together; far more than a broker bears.
MAX_PARTITIONS: Final = 100_000


@dataclass(frozen=True, slots=True)
class TopicPeriod:
    """A topic, and the rounds whose reports lie in it.

    Attributes:
        from_s: The earliest start of a round that lies here, seconds since 1970; the next period's is the
            end.
        topic: The topic's name.
        partitions: How many of it are used; it never changes, whatever is added to the topic later.
        identity: The topic's id, which tells it from another of its name.
    """

    from_s: int
    topic: str
    partitions: int
    identity: str


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """All topic periods that a log has had; it is appended to and never changed otherwise.

    Attributes:
        periods: In the order in which they came into force; the first is in force from 0 on.

    Raises:
        ParameterError: If there is no period, the first does not begin at 0, they are not in order, or one
            has no partition.
    """

    periods: tuple[TopicPeriod, ...]

    def __post_init__(self) -> None:
        starts = [period.from_s for period in self.periods]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise ParameterError(f"periods must begin at 0, each after the one before, got {starts}")
        for period in self.periods:
            if not 1 <= period.partitions <= MAX_PARTITIONS:
                raise ParameterError(
                    f"topic {period.topic}: partitions must be in [1, {MAX_PARTITIONS}], "
                    f"got {period.partitions}"
                )

    @classmethod
    def of(cls, partitions: int, *, topic: str = "", identity: str = "") -> Self:
        """Return the partition map of a log that never grew."""
        return cls((TopicPeriod(0, topic, partitions, identity),))

    @property
    def partitions(self) -> int:
        """The number of partitions in all."""
        return sum(period.partitions for period in self.periods)

    def grown(self, period: TopicPeriod) -> PartitionMap:
        """Return this map with one more topic period.

        Raises:
            ParameterError: If it does not begin after all others.
        """
        return PartitionMap((*self.periods, period))

    def continues(self, other: PartitionMap) -> bool:
        """Return whether this is `other`, or has grown from it."""
        return self.periods[: len(other.periods)] == other.periods

    def partitions_at(self, start_s: float) -> range:
        """Return the partitions of a round that starts at `start_s`, seconds since 1970."""
        first, found = 0, range(self.periods[0].partitions)
        for period in self.periods:
            if start_s >= period.from_s:
                found = range(first, first + period.partitions)
            first += period.partitions
        return found

    def place(self, partition: int) -> tuple[int, int]:
        """Return the period of a partition, and its number within that topic.

        Raises:
            ParameterError: If there is no such partition.
        """
        local = partition
        for number, period in enumerate(self.periods):
            if 0 <= local < period.partitions:
                return number, local
            local -= period.partitions
        raise ParameterError(f"partition must be in [0, {self.partitions}), got {partition}")

    def share(self, partition: int) -> tuple[int, int]:
        """Return a partition's number within its topic, and the number of that topic's partitions.

        Raises:
            ParameterError: If there is no such partition.
        """
        period, local = self.place(partition)
        return local, self.periods[period].partitions

    def window(self, partition: int) -> tuple[int, float]:
        """Return the starts of the rounds that lie in a partition: from the first, and below the second."""
        number, _ = self.place(partition)
        last = number + 1 == len(self.periods)
        return self.periods[number].from_s, float("inf") if last else self.periods[number + 1].from_s
