"""The description of the read API, OpenAPI 3.1, as JSON types."""

from hubbub.lazy import attach

attach(__name__)
