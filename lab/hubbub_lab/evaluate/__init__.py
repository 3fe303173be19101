"""Surveys compared on data of known truth, by error and by what they reveal."""

from hubbub.lazy import attach

attach(__name__)
