"""The counting of reports: verdicts, duplicates and dead letters."""

from hubbub.lazy import attach

attach(__name__)
