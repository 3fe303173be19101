"""The description of the read API, OpenAPI 3.1, as JSON types."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_aggregator.web.openapi.description import API_VERSION, openapi_document

__all__ = ["API_VERSION", "openapi_document"]

attach(__name__, {"hubbub_aggregator.web.openapi.description": ("API_VERSION", "openapi_document")})
