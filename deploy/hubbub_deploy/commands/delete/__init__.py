"""`hubbub delete`: the command, and what it deletes of a node and of a cluster."""

from hubbub.lazy import attach

attach(__name__)
