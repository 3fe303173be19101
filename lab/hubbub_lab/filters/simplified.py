"""The simplified Bayesian filter: one number per query, its epsilon, stands for all its pairs of values.

Pan, eq. 29 and theorem 4.2, with pending queries: accept while

    realised loss + sum over pending queries of epsilon_i <= budget.

It is sound because no pair's divergence exceeds epsilon, and refuses what the full filter refuses and more:
with GRR the two are the same on one coordinate, with structured channels they are not.
"""

from __future__ import annotations

from typing import ClassVar

from hubbub.channels import Detail
from hubbub.filter import BayesianFilter


class SimplifiedFilter(BayesianFilter):
    """A `BayesianFilter` that does not look at which values a pending query tells apart.

    >>> from hubbub_authoring import mechanisms
    >>> category = mechanisms.pbgrr([2, 2], epsilon=0.5, boost_epsilon=0.0)
    >>> for kind in (BayesianFilter, SimplifiedFilter):
    ...     accountant = kind(1.5)
    ...     accountant.record(accountant.reserve("colour", mechanisms.grr(4, epsilon=1.0)), 0)
    ...     accountant.record(accountant.reserve("colour", category), 1)
    ...     print(accountant.reserve("colour", mechanisms.pbgrr([2, 2], epsilon=1.0, boost_epsilon=0.4)))
    2
    None
    """

    _detail: ClassVar[Detail] = "largest"
