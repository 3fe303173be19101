"""The log of what was published, for anybody, in the paths of c2sp.org/tlog-tiles under /log."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub.transparency import LOG_PATH, TILE, number_of, tile_place
from hubbub_aggregator.stores import TransparencyLog
from hubbub_aggregator.web import ANY_ORIGIN

_FOR_EVER: Final = {"cache-control": "public, max-age=31536000, immutable", **ANY_ORIGIN}
_NOW: Final = {"cache-control": "no-cache", **ANY_ORIGIN}
_LEVELS: Final = 8
_MOST: Final = 2**62
"""Numbers beyond are none that SQLite could look for."""


def log_routes(log: TransparencyLog) -> list[Route]:
    """Return the routes of a log: its checkpoint, its tiles and its entries, which never change."""

    async def checkpoint(request: Request) -> Response:
        note = await to_thread.run_sync(log.published)
        if note is None:
            raise HTTPException(404)
        return Response(note, headers=_NOW, media_type="text/plain; charset=utf-8")

    async def tile(request: Request) -> Response:
        name, place = request.path_params["level"], tile_place(request.path_params["place"])
        level, found = number_of(name), None
        if place is not None and (name == "entries" or (level is not None and level < _LEVELS)):
            number, width = place
            if number * TILE < 2**56:  # of which SQLite knows the places
                ask = (log.entries, number, width) if level is None else (log.tile, level, number, width)
                found = await to_thread.run_sync(*ask)
        if found is None:
            raise HTTPException(404)
        return Response(found, headers=_FOR_EVER, media_type="application/octet-stream")

    async def counted(request: Request) -> Response:
        asked, place = request.path_params, request.path_params.get("tile")
        number, found = asked["round"], None
        if re.fullmatch("[0-9a-f]{32}", asked["digest"]) and max(number, place or 0) < _MOST:
            digest = bytes.fromhex(asked["digest"])
            read = partial(log.counted, digest, number)
            if place is not None:
                read = partial(log.counted_tile, digest, number, place)
            found = await to_thread.run_sync(read)
        if found is None:
            raise HTTPException(404)
        headers = _NOW if place is None else _FOR_EVER
        return Response(found, headers=headers, media_type="application/octet-stream")

    about = f"{LOG_PATH}/counted/{{digest}}/{{round:int}}"
    return [
        Route(about, counted),
        Route(f"{about}/{{tile:int}}", counted),
        Route(f"{LOG_PATH}/checkpoint", checkpoint),
        Route(f"{LOG_PATH}/tile/{{level}}/{{place:path}}", tile),
    ]
