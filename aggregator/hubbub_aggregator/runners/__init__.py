"""The processes that count: embedded, with Faust, with aiokafka, and the publisher."""

from hubbub.lazy import attach

attach(__name__)
