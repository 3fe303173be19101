"""A reader of results for notebooks and scripts: surveys, releases, history, comparison, plots."""

from hubbub.lazy import attach

attach(__name__)
