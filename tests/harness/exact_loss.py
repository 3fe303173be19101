"""The loss of a record by brute force in rational numbers: what the filter is compared with."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

import numpy as np
from independent_bound import Said, largest_of_finite

from hubbub.channels.channel import Channel


@dataclass
class ExactRecord:
    """Every query about one record that was not cancelled, with its answer once there is one."""

    queries: dict[int, list] = field(default_factory=dict)
    cancelled: int = 0
    specs: dict[int, tuple] = field(default_factory=dict)

    def reserve(
        self, ticket: int, coordinate: Hashable, channel: Channel, mapping: np.ndarray | None
    ) -> None:
        rows = channel.weights().tolist()
        inputs = range(channel.inputs) if mapping is None else mapping.tolist()
        self.queries[ticket] = [coordinate, [rows[x] for x in inputs], None]
        self.specs[ticket] = coordinate, channel.to_spec(), mapping

    def record(self, ticket: int, symbol: int) -> None:
        self.queries[ticket][2] = symbol

    def cancel(self, ticket: int) -> None:
        assert self.queries.pop(ticket)[2] is None
        self.cancelled += 1

    def realised(self) -> Fraction:
        """The largest ratio of the probabilities of the recorded answers under two records."""
        return self._ratio([query for query in self.queries.values() if query[2] is not None])

    def found(self) -> float:
        """The largest log-ratio of the recorded answers by the channels' maps alone, nats."""
        said = {ticket: query[2] for ticket, query in self.queries.items() if query[2] is not None}
        return largest_of_finite(Said(*self.specs[ticket], symbol) for ticket, symbol in said.items())

    def worst(self) -> Fraction:
        """The same with all pending queries, each at the symbol that is worst for the pair of records."""
        return self._ratio(list(self.queries.values()))

    def _ratio(self, queries: list) -> Fraction:
        return prod(
            (
                self._coordinate_ratio([query for query in queries if query[0] == coordinate])
                for coordinate in {query[0] for query in queries}
            ),
            start=Fraction(1),
        )

    @staticmethod
    def _coordinate_ratio(queries: list) -> Fraction:
        domain = range(len(queries[0][1]))
        return max(
            prod(
                (_answer_ratio(rows[x], rows[other], symbol) for _, rows, symbol in queries),
                start=Fraction(1),
            )
            for x in domain
            for other in domain
        )


def _answer_ratio(row: list[int], other: list[int], symbol: int | None) -> Fraction:
    if symbol is not None:
        return Fraction(row[symbol], other[symbol])
    return max(Fraction(a, b) for a, b in zip(row, other, strict=True))
