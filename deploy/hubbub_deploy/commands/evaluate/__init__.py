"""`hubbub evaluate`: mechanisms, epsilons, sizes, data sets and faults, measured beside exact errors."""

from hubbub.lazy import attach

attach(__name__)
