"""Large documents travel compressed to readers who say that they take it, under a tag of their own."""

from __future__ import annotations

import gzip

import pytest
from asgi_reader import DIGEST, get
from shown_view import ShownView, round_of, snapshot_of, survey_of

from hubbub_aggregator.web.api import create_app

SHARES = [(str(number), "all", 0.01) for number in range(100)]
PATHS = ["/", "/page/page.js", "/api/live", "/api/surveys", f"/api/surveys/{DIGEST}/rounds/1"]
PATHS += ["/api/v1/openapi.json"]
PATHS += [f"/api/v1/surveys/visits/{rest}" for rest in ("rounds/1", "rounds/1.csv", "history", "rounds")]


def large() -> ShownView:
    return ShownView(
        snapshot_of(survey_of("visits", *(round_of(n, shares=SHARES, sealed=n < 8) for n in range(9))))
    )


@pytest.mark.parametrize("path", PATHS)
def test_a_reader_who_takes_gzip_gets_the_same_document_smaller(path: str) -> None:
    app = create_app(large())
    plain, small = get(app, path), get(app, path, accept_encoding="br;q=1.0, gzip;q=0.8")
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert gzip.decompress(small.body) == plain.body
    assert len(small.body) < 0.7 * len(plain.body)
    assert plain.headers["vary"] == small.headers["vary"] == "accept-encoding"
    # Strong tags name bytes, and these are others.
    assert plain.headers["etag"] != small.headers["etag"]
    for tag in (plain.headers["etag"], small.headers["etag"], "*"):
        again = get(app, path, accept_encoding="gzip", if_none_match=tag)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", small.headers["etag"])
        assert "content-encoding" not in again.headers


@pytest.mark.parametrize("accepts", ["", "br", "gzip;q=0", "*;q=0", "identity", "gzip;q=x", "gzip;q=0, *"])
def test_who_does_not_take_gzip_gets_plain_bytes(accepts: str) -> None:
    answer = get(create_app(large()), "/api/live", accept_encoding=accepts)
    assert "content-encoding" not in answer.headers
    assert answer.body.startswith(b"{")


def test_what_fits_one_packet_travels_as_it_is() -> None:
    answer = get(create_app(ShownView()), "/api/live", accept_encoding="gzip")
    assert len(answer.body) < 1024
    assert "content-encoding" not in answer.headers
