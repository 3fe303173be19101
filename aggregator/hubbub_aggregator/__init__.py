"""Count reports, keep the counts, release the estimates, show them."""

from hubbub.lazy import attach

attach(__name__)
