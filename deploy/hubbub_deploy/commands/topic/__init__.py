"""`hubbub topic`: the command, and the copy of a node's log into the topic that it makes."""

from hubbub.lazy import attach

attach(__name__)
