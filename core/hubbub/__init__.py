"""Local differential privacy for streams of reports: the mathematics and the contracts.

>>> import hubbub
>>> hubbub.mechanisms.grr(4, epsilon=1.0).outputs
4
"""

from hubbub.lazy import attach

attach(__name__)
