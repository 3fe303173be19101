"""A reader must know the token, as Bearer or Basic, and nothing is told to who does not."""

from __future__ import annotations

import base64

import pytest
from asgi_reader import DIGEST, get
from shown_view import ShownView, round_of, snapshot_of, survey_of

from hubbub_aggregator.web.api import create_app

TOKEN = "a-token-of-readers"  # noqa: S105 - of this test
PATHS = ["/", "/page/page.js", "/api/live", "/api/events", "/api/v1/surveys", "/api/v1/openapi.json"]
PATHS += [f"/api/surveys/{DIGEST}/rounds/1.csv", "/api/v1/surveys/visits/releases.parquet", "/nowhere"]


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.fixture
def app():
    return create_app(ShownView(snapshot_of(survey_of("visits", round_of()))), read_token=TOKEN)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer " + TOKEN[:-1], f"Bearer {TOKEN}x", basic(TOKEN), basic("x:y"), "Basic %"],
)
def test_who_does_not_know_the_token_is_told_nothing(app, path: str, header: str | None) -> None:
    answer = get(app, path, **({} if header is None else {"authorization": header}))
    assert (answer.status, answer.json["title"]) == (401, "Unauthorized")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers
    assert TOKEN.encode() not in answer.body
    assert b"visits" not in answer.body


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer  {TOKEN} ", basic(f"anyone:{TOKEN}")])
def test_who_knows_the_token_reads(app, header: str) -> None:
    assert get(app, "/api/v1/surveys", authorization=header).json["surveys"][0]["id"] == "visits"
    assert get(app, "/", authorization=header).status == 200


def test_a_browser_is_asked_for_it_and_health_and_metrics_are_open(app) -> None:
    assert 'realm="hubbub"' in get(app, "/").headers["www-authenticate"]
    assert get(app, "/healthz").status == get(app, "/readyz").status == 200
    assert b"hubbub_sealing 1.0" in get(app, "/metrics").body


def test_a_dashboard_that_stands_by_is_healthy_and_not_ready() -> None:
    stale = {"since": "2026-01-01T00:00:00Z", "why": "another dashboard is at work"}
    app = create_app(ShownView(snapshot_of(survey_of("visits")) | {"stale": stale}))
    assert get(app, "/healthz").status == 200
    answer = get(app, "/readyz")
    assert (answer.status, answer.json["stale"]) == (503, stale)
    sealing_none = create_app(ShownView(snapshot_of(survey_of("visits")) | {"unsealed": "clocks differ"}))
    assert get(sealing_none, "/readyz").status == 503


def test_without_a_token_anyone_reads() -> None:
    assert get(create_app(ShownView()), "/api/v1/surveys").status == 200


CHECKED = ("surveys", f"surveys/{DIGEST}/rounds", f"surveys/{DIGEST}/canonical")
CHECKED += tuple(f"surveys/{DIGEST}/rounds/1/{part}" for part in ("counts", "sealed"))


def test_pages_of_other_sites_read_what_checks_a_release_and_nothing_else() -> None:
    view = ShownView(snapshot_of(survey_of("visits", round_of())))
    is_open = create_app(view)
    allowed = {
        path
        for path in [f"/api/v1/{path}" for path in CHECKED] + [f"/api/v1/surveys/{DIGEST}/rounds/1"] + PATHS
        if path != "/api/events"
        and get(is_open, path, origin="null").headers.get("access-control-allow-origin") == "*"
    }
    assert allowed == {f"/api/v1/{path}" for path in CHECKED}
    closed = create_app(view, read_token=TOKEN)
    for path in allowed:  # nor do they where a reader must know a token, by whatever browser
        for known in ({}, {"authorization": f"Bearer {TOKEN}"}):
            headers = get(closed, path, origin="null", **known).headers
            assert not [name for name in headers if name.startswith("access-control-")]
