"""The processes around a log: the keeper of its key, a witness, and a reader of all its entries."""

from hubbub.lazy import attach

attach(__name__)
