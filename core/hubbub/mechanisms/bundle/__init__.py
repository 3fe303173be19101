"""Parts: a public coin picks one table of a few attributes, and the report is about that table alone."""

from hubbub.lazy import attach

attach(__name__)
