from hubbub_aggregator.web.openapi.description import (
    API_VERSION as API_VERSION,
    openapi_document as openapi_document,
)
