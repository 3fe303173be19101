"""Two rounds compared, a survey's history and its alerts: what the read API says of several rounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub_aggregator.export import csv_pieces
from hubbub_aggregator.release import IncomparableError, change, history
from hubbub_aggregator.web.documents import RenderedSnapshot, file_name, to_json
from hubbub_aggregator.web.parameters import (
    Endpoint,
    Found,
    ProblemError,
    answering,
    digest_named,
    digest_of,
    name_of,
    read_choice,
    read_number,
    read_share,
    refuse_others,
)
from hubbub_aggregator.web.responses import CSV, problem, rendered
from hubbub_aggregator.web.snapshot_cache import SnapshotCache

_CELLS: Final = {"value": "values", "category": "categories", "mean": "mean"}
"""Kinds of cells, and where a round has them."""

_ENDS: Final = ("estimate", "low", "high")
_SO_FAR: Final = ("round", "devices", "kind", "label", "estimate", "always_low", "always_high")
"""Columns of the table of all rounds so far."""


class ComparisonApi:
    """The routes that compare rounds of the newest snapshot.

    Args:
        cache: Where the newest snapshot is.
    """

    def __init__(self, cache: SnapshotCache) -> None:
        self._cache = cache

    def routes(self) -> list[Route]:
        """Return the routes, below `/api/v1`."""
        paths: dict[str, Endpoint] = {
            "/surveys/{survey}/change": self.change,
            "/surveys/{survey}/history": self.history,
            "/surveys/{survey}/so_far.csv": self.so_far,
            "/surveys/{survey}/alerts": self.alerts,
        }
        return [Route("/api/v1" + path, answering(endpoint)) for path, endpoint in paths.items()]

    async def change(self, request: Request) -> Response:
        """Answer with the change between two rounds; 409 with the reason where it would mean nothing.

        The earlier round may be of another survey, `from`, that reads the same attributes.
        """
        refuse_others(request, "before", "after", "from", "stage")
        edition = await self._cache.current()
        digest = digest_of(request, edition)
        earlier = request.query_params.get("from")
        origin = digest if earlier is None else digest_named(earlier, edition, subject="from", status=409)
        stage = read_choice(request, "stage", ("sealed", "all")) or "sealed"
        before = _compared(request, edition, "before", origin, stage)
        after = _compared(request, edition, "after", digest, stage)
        numbers = before["round"], after["round"]
        kind, asked = _kind(edition, digest), (after.get("enrolment") or {}).get("asked")
        attributes = _attributes(edition, origin), _attributes(edition, digest)
        try:
            return await rendered(
                request,
                edition,
                ("v1 change", origin, digest, *numbers),
                lambda: to_json(change(before, after, kind=kind, asked=asked, attributes=attributes)),
            )
        except IncomparableError as error:
            subject, _, rest = str(error).partition(" must ")
            rule, _, came = rest.partition(", got ")
            raise ProblemError(problem(409, subject, f"must {rule}", came)) from error

    async def history(self, request: Request) -> Response:
        """Answer with every cell over the releases, or one of them, with a trend where it means something."""
        refuse_others(request, "kind", "label", "step", "season")
        edition = await self._cache.current()
        digest = digest_of(request, edition)
        kind, label = read_choice(request, "kind", tuple(_CELLS)), request.query_params.get("label")
        if label is not None and kind not in ("value", "category"):
            raise ProblemError(problem(404, "label", "must be given with kind=value or kind=category", label))
        step, season = read_share(request, "step"), read_number(request, "season", default=0) or None
        rounds = [found for (each, _), found in edition.rounds.items() if each == digest and found["sealed"]]
        only = None if kind is None else (_CELLS[kind], label)
        family = _CELLS[kind or "value"]
        if label is not None and not any(
            label == cell["label"] for found in rounds for cell in found[family]
        ):
            raise ProblemError(problem(404, "label", f"must be that of a released {kind}", label))
        answers = _kind(edition, digest)
        key = ("v1 history", digest, kind, label, step, season)
        so_far = edition.so_far[digest]
        if kind is not None:
            so_far = _alone(so_far, kind, label)
        return await rendered(
            request,
            edition,
            key,
            lambda: to_json(
                history(rounds, kind=answers, only=only, step=step, season=season) | {"so_far": so_far}
            ),
        )

    async def so_far(self, request: Request) -> Response:
        """Answer with the estimates of all rounds so far, after each of the newest, as a table."""
        refuse_others(request)
        edition = await self._cache.current()
        digest = digest_of(request, edition)
        found = edition.so_far[digest]
        name = edition.digests[digest]
        extra = {"content-disposition": f'attachment; filename="{file_name({"survey": name})}-so-far.csv"'}
        key = ("v1 so_far", digest)
        return await rendered(
            request,
            edition,
            key,
            lambda: b"".join(csv_pieces(_lines(found), columns=_SO_FAR)),
            CSV,
            extra=extra,
        )

    async def alerts(self, request: Request) -> Response:
        """Answer with what is found in the newest releases: jumps, impossible estimates, small margins."""
        refuse_others(request)
        edition = await self._cache.current()
        digest = digest_of(request, edition)
        found = {"survey": name_of(edition, digest), **edition.alerts[digest]}
        return await rendered(request, edition, ("v1 alerts", digest), lambda: to_json(found))


def _lines(so_far: Found) -> Iterator[Found]:
    """Yield a row per cell and round of what `SoFar` gives."""
    for kind, name in _CELLS.items():
        cells = so_far[name] if name != "mean" else [so_far["mean"]] * (so_far["mean"] is not None)
        for cell in cells:
            ends = zip(so_far["rounds"], so_far["devices"], *(cell[end] for end in _ENDS), strict=True)
            for number, devices, *numbers in ends:
                yield dict(zip(_SO_FAR, (number, devices, kind, cell.get("label"), *numbers), strict=True))


def _compared(request: Request, edition: RenderedSnapshot, name: str, digest: str, stage: str) -> Found:
    """Return one of the two rounds of a comparison."""
    number = read_number(request, name, default=0)
    if name not in request.query_params:
        raise ProblemError(problem(400, name, "must be the number of a round", ""))
    found = edition.rounds.get((digest, number))
    if found is None or not (found["sealed"] or stage == "all"):
        what = "a round" if stage == "all" else "a sealed round"
        raise ProblemError(
            problem(404, name, f"must be the number of {what} of survey {digest}, counted from 1", number)
        )
    return found


def _alone(found: Found, kind: str, label: str | None) -> Found:
    """Return a round with the cells of one kind, or the one of a label, alone."""
    cells = found[_CELLS[kind]]
    if label is not None:
        cells = [cell for cell in cells if cell["label"] == label]
    return {**found, "values": [], "categories": [], "mean": None, _CELLS[kind]: cells}


def _attributes(edition: RenderedSnapshot, digest: str) -> list[str]:
    return [attribute["id"] for attribute in edition.digests[digest]["attributes"]]


def _kind(edition: RenderedSnapshot, digest: str) -> Literal["static", "evolving"]:
    """Return "static" where devices send their first answer again: all that the survey reads is static."""
    kinds = {attribute["kind"] for attribute in edition.digests[digest]["attributes"]}
    return "static" if kinds == {"static"} else "evolving"
