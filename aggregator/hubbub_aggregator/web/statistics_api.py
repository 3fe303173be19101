"""Statistics of tables: the part of the read API that computes what a reader asks of one round."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub.errors import ParameterError
from hubbub_aggregator.export import csv_pieces
from hubbub_aggregator.web.documents import RenderedSnapshot, file_name, to_json
from hubbub_aggregator.web.parameters import (
    Endpoint,
    Found,
    ProblemError,
    answering,
    name_of,
    read_choice,
    refuse_others,
    round_named,
)
from hubbub_aggregator.web.responses import CSV, JSON, problem, rendered
from hubbub_aggregator.web.snapshot_cache import SnapshotCache
from hubbub_aggregator.web.table_statistics import (
    COLUMNS_OF_STATISTICS,
    STATISTICS,
    StatisticRow,
    statistic_rows,
)

MOST_CHARACTERS: Final = 4096
"""Characters of a parameter: a census of a hundred readings."""

_ASKED: Final = ("kind", "of", "given", "on", "census", "level")


class StatisticsApi:
    """The routes that compute statistics of the newest snapshot.

    Args:
        cache: Where the newest snapshot is.
    """

    def __init__(self, cache: SnapshotCache) -> None:
        self._cache = cache

    def routes(self) -> list[Route]:
        """Return the routes, below `/api/v1`."""
        path = "/api/v1/surveys/{survey}/rounds/{round}/statistics"
        return [
            Route(path + ending, answering(self._answer(media_type)))
            for ending, media_type in (("", JSON), (".csv", CSV))
        ]

    def _answer(self, media_type: str) -> Endpoint:
        async def answer(request: Request) -> Response:
            refuse_others(request, *_ASKED)
            edition = await self._cache.current()
            digest, number, found = round_named(request, edition)
            table = edition.digests[digest].get("table")
            if table is None:
                raise ProblemError(problem(409, "statistics", "must be of a cross table or a bundle", digest))
            asked = {name: request.query_params.get(name, "") for name in _ASKED}
            too_long = next((name for name, text in asked.items() if len(text) > MOST_CHARACTERS), None)
            if too_long is not None:
                rule = f"must have at most {MOST_CHARACTERS} characters"
                raise ProblemError(problem(400, too_long, rule, len(asked[too_long])))
            kind = read_choice(request, "kind", STATISTICS) or STATISTICS[0]

            def render() -> bytes:
                rows = _rows(found, table, kind, asked)
                if media_type == CSV:
                    return b"".join(csv_pieces(map(asdict, rows), columns=COLUMNS_OF_STATISTICS))
                return to_json(_document(edition, digest, found, kind, rows))

            key = ("v1 statistics", media_type, digest, number, *asked.values())
            name = f"{file_name(found)}-round-{number}-{kind}.csv"
            extra = {"content-disposition": f'attachment; filename="{name}"'} if media_type == CSV else None
            try:
                return await rendered(request, edition, key, render, media_type, extra=extra)
            except ParameterError as error:
                subject, _, rest = str(error).partition(" must ")
                rule, _, came = rest.partition(", got ")
                raise ProblemError(problem(400, subject, f"must {rule}", came)) from error

        return answer


def _rows(found: Found, table: Found, kind: str, asked: dict[str, str]) -> list[StatisticRow]:
    try:
        level = float(asked["level"] or 0.95)
    except ValueError:
        raise ParameterError(f"level must be a number, got {asked['level']}") from None
    return statistic_rows(found, table, kind, asked, level=level)


def _document(
    edition: RenderedSnapshot, digest: str, found: Found, kind: str, rows: list[StatisticRow]
) -> Found:
    return {
        "survey": name_of(edition, digest),
        "round": found["round"],
        "sealed": found["sealed"],
        "devices": found["devices"],
        "kind": kind,
        "of": "everybody who could have been asked",
        "rows": [asdict(row) for row in rows],
    }
