"""The form of a key-value survey: a number that not every device has, and its mean among those who do."""

from hubbub.lazy import attach

attach(__name__)
