"""The gateway under uvicorn, set up so that no trace of a sender is kept."""

from __future__ import annotations

import uvicorn
from starlette.applications import Starlette

from hubbub_collector.settings import GatewaySettings


def create_server(
    app: Starlette, *, host: str = "127.0.0.1", port: int = 8400, settings: GatewaySettings | None = None
) -> uvicorn.Server:
    """A uvicorn server that keeps no trace of senders: no access log, no proxy headers, nothing about itself.

    `server.run()` serves until a signal, or `server.should_exit = True`; open requests are then finished, the
    last batch is written, and the application's lifespan ends.

    Args:
        app: What `create_app` gave.
        host: Address to listen on.
        port: TCP port; 0 for any free one.
        settings: The same as the application's.
    """
    settings = settings or GatewaySettings()
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        log_level="warning",
        log_config=None,
        ws="none",
        lifespan="on",
        limit_concurrency=settings.max_connections,
        timeout_graceful_shutdown=settings.shutdown_s,
    )
    return uvicorn.Server(config)
