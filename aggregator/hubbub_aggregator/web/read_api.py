"""The read API, version 1: surveys, rounds and tables for programs, which `openapi` describes.

A survey is named by its digest, or by its id, which means its newest version. Lists come in pages: `limit`
entries and `next`, a reference relative to the list's own address, null at the end. Rounds count from 1.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hubbub_aggregator.export import (
    VIEWS,
    can_write_parquet,
    csv_pieces,
    json_lines,
    tidy_rows,
    write_parquet,
)
from hubbub_aggregator.release import round_views, sealed_bytes
from hubbub_aggregator.stores import SURVEY_ROW
from hubbub_aggregator.web.documents import (
    RenderedSnapshot,
    file_name,
    survey_summary,
    table_name,
    to_json,
    with_standard_errors,
)
from hubbub_aggregator.web.openapi import API_VERSION, openapi_document
from hubbub_aggregator.web.parameters import (
    Endpoint,
    Found,
    ProblemError,
    answering,
    digest_of,
    is_digest,
    name_of,
    public,
    read_choice,
    read_limit,
    read_number,
    refuse_others,
    round_named,
)
from hubbub_aggregator.web.responses import CSV, accepts_gzip, compressed_pieces, document, problem, rendered
from hubbub_aggregator.web.snapshot_cache import SnapshotCache
from hubbub_aggregator.web.view import View

_PARQUET: Final = "application/vnd.apache.parquet"
_PIECE_BYTES: Final = 64 * 2**10
_KEPT_TABLES: Final = 4

_CHECKED: Final = frozenset(
    {
        "/surveys",
        "/surveys/{survey}/rounds",
        "/surveys/{survey}/canonical",
        "/surveys/{survey}/rounds/{round}/counts",
        "/surveys/{survey}/rounds/{round}/sealed",
    }
)
"""The paths that a checker of releases reads, wherever its page comes from."""

Pieces: TypeAlias = Callable[[Iterable[Mapping[str, Any]]], Iterator[bytes]]

_FORMS: Final[Mapping[str, tuple[str, Pieces]]] = {
    "csv": (CSV, csv_pieces),
    "ndjson": ("application/x-ndjson", json_lines),
}


class ReadApi:
    """The routes of the read API over the newest snapshot.

    Args:
        cache: Where the newest snapshot is.
        view: Where the bytes beside it are.
        is_public: Anyone may read; so may the pages of other sites read what is sealed.
    """

    def __init__(self, cache: SnapshotCache, view: View, *, is_public: bool = True) -> None:
        self._cache, self._view, self._is_public = cache, view, is_public
        self._description = to_json(openapi_document())
        # A table of all rounds takes a thread, a file and memory: one is written at a time.
        self._tables = CapacityLimiter(1)
        # The Parquet files made last, by entity tag.
        self._made: dict[str, bytes] = {}

    def routes(self) -> list[Route]:
        """Return the routes, below `/api/v1`."""
        paths: dict[str, Endpoint] = {
            "/openapi.json": self.description,
            "/surveys": self.surveys,
            "/surveys/{survey}": self.survey,
            "/surveys/{survey}/rounds": self.rounds,
            "/surveys/{survey}/rounds/{round}.csv": self._round_as("csv"),
            "/surveys/{survey}/rounds/{round}.ndjson": self._round_as("ndjson"),
            "/surveys/{survey}/canonical": self.canonical,
            "/surveys/{survey}/rounds/{round}/counts": self.counts,
            "/surveys/{survey}/rounds/{round}/sealed": self.sealed,
            "/surveys/{survey}/rounds/{round}/recounts": self.recounts,
            "/surveys/{survey}/rounds/{round}": self.round,
            "/surveys/{survey}/releases.csv": self._releases_as("csv"),
            "/surveys/{survey}/releases.ndjson": self._releases_as("ndjson"),
            "/surveys/{survey}/releases.parquet": self.releases_parquet,
        }
        return [
            Route(
                "/api/v1" + path,
                public(endpoint) if self._is_public and path in _CHECKED else answering(endpoint),
            )
            for path, endpoint in paths.items()
        ]

    async def description(self, request: Request) -> Response:
        """Answer with the description of this API, OpenAPI 3.1."""
        refuse_others(request)
        edition = await self._cache.current()
        return await rendered(request, edition, "openapi", lambda: self._description)

    async def surveys(self, request: Request) -> Response:
        """Answer with a page of surveys, by id, version and digest."""
        refuse_others(request, "limit", "after")
        edition = await self._cache.current()
        after = request.query_params.get("after")
        digests = list(edition.digests)
        start = 0
        if after is not None:
            if not is_digest(after):
                raise ProblemError(problem(400, "after", "must be a digest, 32 hexadecimal digits", after))
            if after.lower() not in digests:
                raise ProblemError(problem(404, "after", "must be the digest of a listed survey", after))
            start = digests.index(after.lower()) + 1
        limit = read_limit(request)
        page = [survey_summary(edition.digests[digest]) for digest in digests[start : start + limit]]
        more = start + limit < len(digests)
        following = f"?limit={limit}&after={page[-1]['digest']}" if more else None
        found = {"surveys": page, "next": following}
        return await rendered(request, edition, ("v1", start, limit), lambda: to_json(found))

    async def survey(self, request: Request) -> Response:
        """Answer with the facts of one survey."""
        refuse_others(request)
        edition = await self._cache.current()
        digest = digest_of(request, edition)
        found = survey_summary(edition.digests[digest])
        return await rendered(request, edition, ("v1", digest), lambda: to_json(found))

    async def rounds(self, request: Request) -> Response:
        """Answer with a page of a survey's rounds, a line each, the oldest first."""
        refuse_others(request, "limit", "after", "sealed")
        edition = await self._cache.current()
        digest = digest_of(request, edition)
        after = read_number(request, "after", default=0)
        sealed = read_choice(request, "sealed", ("true", "false"))
        lines = [
            {key: value for key, value in line.items() if key not in ("json", "csv")}
            for line in edition.digests[digest]["rounds"]
            if line["round"] > after and (sealed is None or line["sealed"] == (sealed == "true"))
        ]
        limit = read_limit(request)
        page = lines[:limit]
        following = None
        if len(lines) > limit:
            rest = f"&sealed={sealed}" if sealed else ""
            following = f"?limit={limit}&after={page[-1]['round']}{rest}"
        found = {"survey": name_of(edition, digest), "rounds": page, "next": following}
        key = ("v1 rounds", digest, after, limit, sealed)
        return await rendered(request, edition, key, lambda: to_json(found))

    async def round(self, request: Request) -> Response:
        """Answer with one round: its release, or provisional estimates."""
        refuse_others(request)
        edition = await self._cache.current()
        digest, number, found = round_named(request, edition)
        return await rendered(
            request,
            edition,
            ("v1", digest, number),
            lambda: to_json(with_standard_errors(found) | round_views(found)),
        )

    async def recounts(self, request: Request) -> Response:
        """Answer with the recounts beside one release, whole; an empty list where there are none."""
        refuse_others(request)
        edition = await self._cache.current()
        digest, number, _ = round_named(request, edition)

        def render() -> bytes:
            recounts = [
                with_standard_errors(found) | round_views(found)
                for found in edition.recounts.get((digest, number), ())
            ]
            return to_json({"survey": name_of(edition, digest), "round": number, "recounts": recounts})

        return await rendered(request, edition, ("v1 recounts", digest, number), render)

    async def canonical(self, request: Request) -> Response:
        """Answer with the canonical bytes of a survey, from which anybody compiles it."""
        refuse_others(request)
        edition = await self._cache.current()
        digest = digest_of(request, edition)
        return self._blob(request, digest, SURVEY_ROW, f"survey {digest}")

    async def counts(self, request: Request) -> Response:
        """Answer with the public counts of one release, whose hash it states."""
        refuse_others(request)
        edition = await self._cache.current()
        digest, number, _ = round_named(request, edition)
        return self._blob(request, digest, number - 1, f"public counts of round {number} of survey {digest}")

    async def sealed(self, request: Request) -> Response:
        """Answer with the bytes of one release, whose SHA-256 the log has."""
        refuse_others(request)
        edition = await self._cache.current()
        digest, number, found = round_named(request, edition)
        if not found["sealed"]:
            raise ProblemError(
                problem(404, f"round {number} of survey {digest}", "must be over", "an open one")
            )
        key, octets = ("v1 sealed", digest, number), "application/octet-stream"
        return await rendered(request, edition, key, lambda: sealed_bytes(found), octets)

    def _blob(self, request: Request, digest: str, row: int, subject: str) -> Response:
        """Answer with bytes that never change, under their hash."""
        data = self._view.blobs().get((bytes.fromhex(digest), row))
        if data is None:
            raise ProblemError(problem(404, subject, "must be of a release with estimates", "none"))
        tag = f'"{hashlib.sha256(data).hexdigest()}"'
        extra = {"cache-control": "public, max-age=31536000, immutable"}
        return document(request, data, "application/octet-stream", tag=tag, extra=extra)

    def _round_as(self, form: str) -> Endpoint:
        media_type, pieces_of = _FORMS[form]

        async def answer(request: Request) -> Response:
            refuse_others(request, "view")
            edition = await self._cache.current()
            digest, number, found = round_named(request, edition)
            views = _views(request)

            def render() -> bytes:
                return b"".join(pieces_of(tidy_rows([found], views=views)))

            name = f"{table_name(found, edition.digests[digest]['schedule']['rounds'])}.{form}"
            key = ("v1", form, digest, number, *views)
            return await rendered(request, edition, key, render, media_type, extra=_attachment(name))

        return answer

    def _releases_as(self, form: str) -> Endpoint:
        media_type, pieces_of = _FORMS[form]

        async def answer(request: Request) -> Response:
            table = await self._table(request, form)
            if table.known is not None:
                return table.known
            pieces = pieces_of(table.rows())
            if table.is_compressed:
                pieces = compressed_pieces(pieces)
            return StreamingResponse(pieces, headers=table.headers, media_type=media_type)

        return answer

    async def releases_parquet(self, request: Request) -> Response:
        """Answer with all releases of a survey as a Parquet file; 501 where DuckDB is not installed."""
        table = await self._table(request, "parquet")
        if not can_write_parquet():
            rule = "need duckdb on the server (pip install 'hubbub[export]'); releases.csv needs none"
            return problem(501, "Parquet files", rule, "no duckdb")
        if table.known is not None:
            return table.known
        async with self._tables:
            made = self._made.get(table.tag)
            if made is None:
                made = await to_thread.run_sync(_parquet_bytes, table.rows())
                self._made[table.tag] = made
                while len(self._made) > _KEPT_TABLES:
                    self._made.pop(next(iter(self._made)))
        headers = {**table.headers, "content-length": str(len(made))}
        return StreamingResponse(_slices(made), headers=headers, media_type=_PARQUET)

    async def _table(self, request: Request, form: str) -> _Table:
        refuse_others(request, "view", "stage")
        edition = await self._cache.current()
        digest = digest_of(request, edition)
        views, stage = _views(request), read_choice(request, "stage", ("sealed", "all")) or "sealed"
        rounds = [
            found
            for (each, _), found in sorted(edition.rounds.items())
            if each == digest and (found["sealed"] or stage == "all")
        ]
        return _Table(request, edition, rounds, views, form)


class _Table:
    """A table of rounds that a reader asks for, and what its answer says of it."""

    def __init__(
        self,
        request: Request,
        edition: RenderedSnapshot,
        rounds: Sequence[Found],
        views: Sequence[str],
        form: str,
    ) -> None:
        self._rounds, self._views = rounds, views
        facts = [
            [found["round"], found["cut"], found["accounting"], found["devices"], found["suppressed"]]
            for found in rounds
        ]
        # Equal facts of one log are equal bytes of one version; a tag of the bytes themselves would need
        # all of them before the first.
        parts = [API_VERSION, form, list(views), edition.snapshot.get("log"), facts]
        if not all(found["sealed"] for found in rounds):
            parts.append(edition.token)
        self.tag = f'"{hashlib.sha256(to_json(parts)).hexdigest()[:32]}"'
        self.is_compressed = form in _FORMS and accepts_gzip(request)
        name = file_name(rounds[0]) if rounds else "releases"
        answer = document(
            request,
            b"",
            CSV,
            tag=self.tag,
            gzipped=b"" if self.is_compressed else None,
            extra=_attachment(f"{name}.{form}"),
        )
        self.known = answer if answer.status_code == 304 or request.method == "HEAD" else None
        self.headers = {
            key: value
            for key, value in answer.headers.items()
            if key not in ("content-length", "content-type")
        }

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Return the rows of the table."""
        return tidy_rows(self._rounds, views=self._views)


def _views(request: Request) -> Sequence[str]:
    chosen = read_choice(request, "view", (*VIEWS, "all")) or "all"
    return VIEWS if chosen == "all" else (chosen,)


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


def _parquet_bytes(rows: Iterator[Mapping[str, Any]]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="hubbub-export-") as folder:
        path = Path(folder) / "releases.parquet"
        write_parquet(rows, path)
        return path.read_bytes()


def _slices(body: bytes) -> Iterator[bytes]:
    # All who read it share the body; one who does not read holds one piece.
    for at in range(0, len(body), _PIECE_BYTES):
        yield body[at : at + _PIECE_BYTES]
