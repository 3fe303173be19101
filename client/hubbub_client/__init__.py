"""The device agent: perturb, keep the ledger, send."""

from hubbub.lazy import attach

attach(__name__)
