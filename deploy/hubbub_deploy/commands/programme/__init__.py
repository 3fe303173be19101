"""`hubbub programme`: several surveys under one lifetime budget."""

from hubbub.lazy import attach

attach(__name__)
