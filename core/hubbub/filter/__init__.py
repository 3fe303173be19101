"""The Bayesian filter, which keeps the privacy loss of a record within a budget."""

from hubbub.lazy import attach

attach(__name__)
