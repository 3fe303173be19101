"""The Bayesian odometer: what has been learnt of a record so far, whoever decided on the queries.

Pan, definition 4.5: the logarithm of the largest ratio of the likelihoods of two records under all answers so
far. It may fall again, when an answer contradicts an earlier one. It is a measurement, not a guarantee; only
a filter bounds it in advance.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Symbol
from hubbub.errors import BudgetError
from hubbub.filter import MAX_BUDGET, BayesianFilter, Likelihood, Regression


class Odometer:
    """An odometer that reads the realised loss of a record.

    >>> from hubbub import mechanisms
    >>> odometer, channel = Odometer(), mechanisms.grr(2, epsilon=0.5)
    >>> for symbol in (1, 1, 0):
    ...     odometer.observe("colour", channel, symbol)
    >>> round(odometer.loss, 6)
    0.5
    """

    def __init__(self) -> None:
        self._account = BayesianFilter(MAX_BUDGET)

    @property
    def loss(self) -> float:
        """The realised loss, nats: an upper bound, tight to a few units an answer on finite domains."""
        return self._account.loss

    def observe(
        self,
        coordinate: Hashable,
        channel: Likelihood | Regression,
        symbol: Symbol,
        *,
        mapping: NDArray[np.integer[Any]] | None = None,
    ) -> None:
        """Take in one answer.

        Args:
            coordinate: See `Query`.
            channel: See `Query`.
            symbol: The answer.
            mapping: See `Query`.

        Raises:
            ParameterError: As for `BayesianFilter.reserve_all` and `BayesianFilter.record`.
            BudgetError: The loss could exceed MAX_BUDGET, beyond which nothing can be measured.
        """
        ticket = self._account.reserve(coordinate, channel, mapping=mapping)
        if ticket is None:
            raise BudgetError(f"an odometer must read at most {MAX_BUDGET} nats, got more")
        self._account.record(ticket, symbol)
