"""The form of surveys that ask for sets of items."""

from hubbub.lazy import attach

attach(__name__)
