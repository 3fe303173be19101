"""Count reports, keep the counts, release the estimates, show them."""
