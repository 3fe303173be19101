"""The gateway: admit reports, strip the sender, append to a log."""
