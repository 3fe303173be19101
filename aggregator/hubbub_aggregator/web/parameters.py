"""Parameters of requests to the read API: read by rules, refused as problems."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from hubbub_aggregator.web.documents import RenderedSnapshot
from hubbub_aggregator.web.responses import ANY_ORIGIN, problem

PAGE_ENTRIES: Final = 100
"""Entries of a page unless `limit` says otherwise."""
MOST_ENTRIES: Final = 1000
"""Most entries of a page: some 300 kB."""
_LONGEST_NUMBER: Final = 18

Found: TypeAlias = dict[str, Any]
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class ProblemError(Exception):
    """A request that is answered by a problem."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def answering(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint, its refusals answered as problems."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ProblemError as found:
            return found.response

    return answer


def public(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint, its answers readable by the pages of any site; browsers add no credentials."""
    answered = answering(endpoint)

    async def answer(request: Request) -> Response:
        response = await answered(request)
        response.headers.update(ANY_ORIGIN)
        return response

    return answer


def refuse_others(request: Request, *names: str) -> None:
    """Refuse a parameter that nobody knows: a typing error would else be a silent default."""
    for name in request.query_params:
        if name not in names:
            rule = "must be one of " + ", ".join(names) if names else "must not be given here"
            raise ProblemError(problem(400, "query parameter", rule, name))
        if len(request.query_params.getlist(name)) > 1:
            raise ProblemError(problem(400, name, "must be given once", request.url.query))


def is_number(text: str) -> bool:
    """Return whether a text is a whole number, not negative, of few digits."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER


def is_digest(text: str) -> bool:
    """Return whether a text has the form of a survey's digest."""
    return re.fullmatch("[0-9a-fA-F]{32}", text) is not None


def read_number(request: Request, name: str, *, default: int) -> int:
    """Return a parameter that is a number, or its default."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not is_number(text):
        raise ProblemError(problem(400, name, "must be a whole number of at most 18 digits", text))
    return int(text)


def read_share(request: Request, name: str) -> float | None:
    """Return a parameter that is a share, from 0 to 1, or None."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0.0 <= share <= 1.0:
        raise ProblemError(problem(400, name, "must be a number from 0 to 1", text))
    return share


def read_limit(request: Request) -> int:
    """Return the most entries that a page may have."""
    limit = read_number(request, "limit", default=PAGE_ENTRIES)
    if not 1 <= limit <= MOST_ENTRIES:
        raise ProblemError(problem(400, "limit", f"must be from 1 to {MOST_ENTRIES}", limit))
    return limit


def read_choice(request: Request, name: str, choices: Sequence[str]) -> str | None:
    """Return a parameter that is one of some words, or None."""
    text = request.query_params.get(name)
    if text is not None and text not in choices:
        raise ProblemError(problem(400, name, "must be one of " + ", ".join(choices), text))
    return text


def digest_of(request: Request, edition: RenderedSnapshot) -> str:
    """Return the digest of the survey that the path names."""
    return digest_named(request.path_params["survey"], edition, subject="survey")


def digest_named(name: str, edition: RenderedSnapshot, *, subject: str, status: int = 404) -> str:
    """Return a survey's digest, found by the digest or by an id, which means its newest version."""
    if name.lower() in edition.digests:
        return name.lower()
    versions = [
        (found["version"], digest) for digest, found in edition.digests.items() if found["id"] == name
    ]
    if not versions:
        rule = "must be the digest (32 hexadecimal digits) or the id of a survey listed at api/v1/surveys"
        raise ProblemError(problem(status, subject, rule, name))
    return max(versions)[1]


def round_named(request: Request, edition: RenderedSnapshot) -> tuple[str, int, Found]:
    """Return the digest, the number and the document of the round that the path names."""
    digest = digest_of(request, edition)
    name = request.path_params["round"]
    known = [number for each, number in edition.rounds if each == digest]
    number = int(name) if is_number(name) else -1
    if name == "latest" and known:
        # The newest release; before there is one, the newest round.
        sealed = [each for each in known if edition.rounds[digest, each]["sealed"]]
        number = max(sealed or known)
    found = edition.rounds.get((digest, number))
    if found is None:
        period = f"from {min(known)} to {max(known)}, or latest" if known else "that has reports; none has"
        raise ProblemError(problem(404, f"round of survey {digest}", f"must be one {period}", name))
    return digest, number, found


def name_of(edition: RenderedSnapshot, digest: str) -> Found:
    """Return what names a survey: id, version, digest and title."""
    found = edition.digests[digest]
    return {key: found[key] for key in ("id", "version", "digest", "title")}
