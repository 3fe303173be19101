"""The way of judged uploads into the log: a batch, the uploads that wait for it, and the writer of both."""

from hubbub.lazy import attach

attach(__name__)
