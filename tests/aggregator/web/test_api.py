"""The API's promises, asked over ASGI without a socket."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest
from asgi_reader import DIGEST, Answer, ask, get, scope
from shown_view import ShownView, round_of, row, snapshot_of, survey_of
from starlette.types import ASGIApp, Message

from hubbub_aggregator.release.round_release import canonical_bytes
from hubbub_aggregator.web import documents
from hubbub_aggregator.web.api import create_app
from hubbub_aggregator.web.view import LiveView


class Listener:
    """An open stream of events, read as it comes and closed like a browser closes a tab."""

    def __init__(self, app: ASGIApp, path: str = "/api/events", **headers: str) -> None:
        self._app, self._path, self._headers = app, path, headers
        self._sent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._left = asyncio.Event()
        self._rest = b""
        self.status = 0
        self.headers: dict[str, str] = {}

    async def __aenter__(self) -> Listener:
        async def receive() -> dict[str, Any]:
            await self._left.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                self._sent.put_nowait(message.get("body", b""))
                if not message.get("more_body"):
                    self._sent.put_nowait(None)

        self._task = asyncio.create_task(self._app(scope(self._path, "GET", self._headers), receive, send))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._left.set()
        await asyncio.wait_for(self._task, 5)

    async def event(self) -> dict[str, str] | None:
        """The next event, or None when the stream has ended."""
        while b"\n\n" not in self._rest:
            chunk = await asyncio.wait_for(self._sent.get(), 5)
            if chunk is None:
                return None
            self._rest += chunk
        block, _, self._rest = self._rest.partition(b"\n\n")
        lines = block.decode().split("\n")
        found = {key: value for key, _, value in (line.partition(": ") for line in lines)}
        return await self.event() if set(found) == {"retry"} else found


def one_survey(**more: Any) -> dict[str, Any]:
    return snapshot_of(survey_of("visits", round_of(0, sealed=True, **more), round_of(1, **more)))


def test_surveys_are_listed_with_a_line_and_links_per_round() -> None:
    app = create_app(ShownView(one_survey(mean=1.5)))
    listed = get(app, "/api/surveys").json["surveys"]
    assert [s["digest"] for s in listed] == [DIGEST]
    assert [line["sealed"] for line in listed[0]["rounds"]] == [True, False]
    assert all("values" not in line and "accounting" not in line for line in listed[0]["rounds"])
    for line in listed[0]["rounds"]:
        assert get(app, "/" + line["json"]).json["round"] == line["round"]
        assert get(app, "/" + line["csv"]).status == 200
    assert get(app, f"/api/surveys/{DIGEST.upper()}").json == listed[0]


def test_a_round_is_served_as_the_view_holds_it() -> None:
    view = ShownView(one_survey(mean=1.5))
    app = create_app(view)
    assert get(app, f"/api/surveys/{DIGEST}/rounds/2").json == view.snapshot()["surveys"][0]["rounds"][1]


def test_csv_holds_every_number_unrounded_and_unclamped() -> None:
    snapshot = one_survey(mean=1.5)
    document = snapshot["surveys"][0]["rounds"][0]
    document["values"][0] |= {"estimate": -0.0123456789012345, "low": -0.05, "high": 0.025}
    answer = get(create_app(ShownView(snapshot)), f"/api/surveys/{DIGEST}/rounds/1.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="visits-v1-round-1.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert [r["kind"] for r in rows] == ["value"] * 3 + ["category"] * 2 + ["mean"]
    wanted = [*document["values"], *document["categories"], document["mean"]]
    assert [float(r["estimate"]) for r in rows] == [w["estimate"] for w in wanted]
    assert [float(r["standard_error"]) for r in rows] == [w["error"] for w in wanted]
    assert {r["digest"] for r in rows} == {DIGEST}
    assert {r["sealed"] for r in rows} == {"true"}


@pytest.mark.parametrize(
    ("label", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        ("-1", "-1"),
        ("+2.5", "+2.5"),
        ("-a", "'-a"),
        ("\tx", "'\tx"),
        ("3", "3"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("\ufe621", "'\ufe621"),
        (" =1", "' =1"),
        ("caf\u00e9 = 1", "caf\u00e9 = 1"),
    ],
)
def test_csv_labels_never_run_as_formulas_and_numbers_stay_numbers(label: str, cell: str) -> None:
    document = {**round_of(), "survey": {"id": "x"}, "values": [row(label, 0.1, 0.01, category=None)]}
    assert next(csv.DictReader(io.StringIO(documents.to_csv(document).decode(), newline="")))["label"] == cell


def test_csv_file_name_is_safe_whatever_the_survey_is_called() -> None:
    document = {**round_of(3), "survey": {"id": '../a"\r\nb', "version": 2}}
    assert documents.csv_name(document) == "a-b-v2-round-4.csv"


def test_a_suppressed_round_leaves_without_estimates_even_if_the_view_holds_them() -> None:
    snapshot = one_survey(mean=1.5)
    for document in snapshot["surveys"][0]["rounds"]:
        document["suppressed"] = True
    app = create_app(ShownView(snapshot))
    shown = get(app, f"/api/surveys/{DIGEST}/rounds/1").json
    assert (shown["values"], shown["categories"], shown["mean"]) == ([], [], None)
    assert shown["accounting"]["accepted"] == 1000
    assert get(app, f"/api/surveys/{DIGEST}/rounds/1.csv").body.count(b"\r\n") == 1
    assert get(app, "/api/live").json["surveys"][0]["shown"]["values"] == []
    assert b'"estimate"' not in get(app, "/api/live").body


@pytest.mark.parametrize(
    ("path", "subject", "value"),
    [
        ("/api/surveys/ffff", "survey", "ffff"),
        ("/api/surveys/ffff/rounds/1", "survey", "ffff"),
        (f"/api/surveys/{DIGEST}/rounds/8", f"round of survey {DIGEST}", "8"),
        (f"/api/surveys/{DIGEST}/rounds/-1", f"round of survey {DIGEST}", "-1"),
        (f"/api/surveys/{DIGEST}/rounds/²", f"round of survey {DIGEST}", "²"),
        (f"/api/surveys/{DIGEST}/rounds/{'9' * 400}.csv", f"round of survey {DIGEST}", "9" * 200),
        ("/api/nothing", "path", "/api/nothing"),
        ("/page/../api.py", "path", "/page/../api.py"),
        ("/page/__init__.py", "page file", "__init__.py"),
    ],
)
def test_what_is_not_there_is_answered_in_json(path: str, subject: str, value: str) -> None:
    answer = get(create_app(ShownView(one_survey())), path)
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.json) == {"type", "title", "status", "detail", "subject", "rule", "value"}
    assert (answer.json["status"], answer.json["title"]) == (404, "Not Found")
    assert answer.json["detail"] == f"{subject} {answer.json['rule']}, got {value}"
    assert (answer.json["subject"], answer.json["value"]) == (subject, value)


def test_other_methods_are_refused_in_json() -> None:
    answer = get(create_app(ShownView()), "/api/live", method="POST")
    assert (answer.status, answer.json["subject"], answer.json["value"]) == (405, "method", "POST")
    assert {name.strip() for name in answer.headers["allow"].split(",")} == {"GET", "HEAD"}


def test_health_and_metrics_say_that_no_round_is_sealed() -> None:
    view = LiveView()
    app = create_app(view)
    assert (get(app, "/healthz").status, get(app, "/healthz").json) == (200, {"status": "ok"})
    assert b"hubbub_sealing 1.0\n" in get(app, "/metrics").body
    view.unsealed = "clocks differ"
    # Whatever is published meanwhile.
    view.publish({"log": "x", "surveys": []})
    health = get(app, "/healthz")
    assert (health.status, health.json["unsealed"]) == (503, "clocks differ")
    assert b"hubbub_sealing 0.0\n" in get(app, "/metrics").body
    assert get(app, "/api/live").json["unsealed"] == "clocks differ"
    view.unsealed = None
    assert get(app, "/healthz").status == 200
    assert "unsealed" not in get(app, "/api/live").json
    view.stand_still(since="2026-01-01T00:00:00Z", why="away")
    assert get(app, "/metrics").body.count(b"hubbub_following 0.0\n") == 1


def test_a_failing_view_is_a_500_that_does_not_tell_why() -> None:
    class Broken(ShownView):
        def snapshot(self) -> dict[str, Any]:
            raise RuntimeError("a secret path")

    async def collect() -> Answer:
        answer = Answer()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request"}

        async def send(message: dict[str, Any]) -> None:
            answer.status = message.get("status", answer.status)
            answer.body += message.get("body", b"")

        with pytest.raises(RuntimeError):  # raised again for the server's log
            await create_app(Broken())(scope("/api/live", "GET", {}), receive, send)
        return answer

    answer = asyncio.run(collect())
    assert answer.status == 500
    assert answer.json["subject"] == "server"
    assert b"secret" not in answer.body


@pytest.mark.parametrize(
    "path", ["/", "/page/style.css", "/api/live", "/api/surveys", f"/api/surveys/{DIGEST}/rounds/1.csv"]
)
def test_unchanged_documents_are_answered_304_and_changed_ones_in_full(path: str) -> None:
    view = ShownView(one_survey())
    app = create_app(view)
    first = get(app, path)
    assert first.headers["cache-control"] == "no-cache"
    again = get(app, path, if_none_match=f'"other", W/{first.headers["etag"]}')
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])
    view.publish(one_survey(devices=2000))
    later = get(app, path, if_none_match=first.headers["etag"])
    assert later.status == (200 if path.startswith("/api") else 304)


def test_another_process_at_the_same_version_has_another_tag() -> None:
    tags = {get(create_app(ShownView(one_survey())), "/api/live").headers["etag"] for _ in range(2)}
    assert len(tags) == 2


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/api/live", "/api/nothing"])
def test_every_response_allows_its_own_origin_only(path: str) -> None:
    headers = get(create_app(ShownView()), path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert {policy[key] for key in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
    assert "unsafe" not in headers["content-security-policy"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_page_names_no_other_origin_and_never_parses_text_as_html() -> None:
    for item in (resources.files("hubbub_aggregator") / "web" / "page").iterdir():
        text = item.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z0-9-]+\.[a-z]|@import|url\((?!#)", text), item.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text
        ), item.name
        assert not re.search(r"<[^>]+\son\w+=|\sstyle=", text), item.name


def test_live_shows_the_newest_round_that_has_estimates() -> None:
    rounds = [round_of(0, sealed=True), round_of(1, sealed=True), round_of(2, suppressed=True)]
    live = get(create_app(ShownView(snapshot_of(survey_of("visits", *rounds)))), "/api/live").json
    assert live["surveys"][0]["shown"]["round"] == 2
    assert [line["round"] for line in live["surveys"][0]["rounds"]] == [1, 2, 3]
    assert live["accounting"]["attempts"] == 3000


def test_live_shows_the_only_round_while_its_cohort_is_too_small() -> None:
    live = get(
        create_app(ShownView(snapshot_of(survey_of("visits", round_of(0, suppressed=True))))), "/api/live"
    ).json
    assert live["surveys"][0]["shown"]["suppressed"] is True
    assert (
        get(create_app(ShownView(snapshot_of(survey_of("visits")))), "/api/live").json["surveys"][0]["shown"]
        is None
    )


def test_live_leaves_out_what_is_too_large_and_the_round_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LIVE_VALUES", 2)
    app = create_app(ShownView(one_survey()))
    shown = get(app, "/api/live").json["surveys"][0]["shown"]
    assert (shown["values"], shown["values_omitted"]) == (None, 3)
    assert len(get(app, f"/api/surveys/{DIGEST}/rounds/2").json["values"]) == 3


def test_a_version_is_rendered_once_however_many_ask() -> None:
    view = ShownView(one_survey())
    app = create_app(view)

    async def crowd() -> None:
        await asyncio.gather(*(ask(app, "/api/live") for _ in range(20)))

    asyncio.run(crowd())
    assert view.looks == 1


def listen(app: ASGIApp, path: str, talk: Callable[[Listener], Any], **headers: str) -> None:
    async def run() -> None:
        async with Listener(app, path, **headers) as listener:
            await talk(listener)

    asyncio.run(run())


def test_a_change_of_version_is_pushed_and_nothing_else() -> None:
    view = ShownView(one_survey())

    async def talk(listener: Listener) -> None:
        first = await listener.event()
        assert first is not None
        assert first["event"] == "live"
        assert json.loads(first["data"])["surveys"][0]["shown"]["devices"] == 1000
        assert listener.headers["content-type"].startswith("text/event-stream")
        assert listener.headers["cache-control"] == "no-store"
        view.publish(one_survey(devices=1100))
        second = await listener.event()
        assert second is not None
        assert json.loads(second["data"])["surveys"][0]["shown"]["devices"] == 1100
        assert second["id"] != first["id"]
        assert view.looks == 2

    listen(create_app(view, poll_s=0.001), "/api/events", talk)


def test_a_silent_stream_beats() -> None:
    async def talk(listener: Listener) -> None:
        kinds = [(await listener.event() or {})["event"] for _ in range(4)]
        assert kinds == ["live", "beat", "beat", "beat"]

    listen(create_app(ShownView(), poll_s=0.001, heartbeat_s=0.002), "/api/events", talk)


@pytest.mark.parametrize("way", ["header", "query"])
def test_a_stream_resumes_without_sending_what_the_reader_has(way: str) -> None:
    view = ShownView(one_survey())
    app = create_app(view, poll_s=0.001)
    token = get(app, "/api/live").json["edition"]

    async def talk(listener: Listener) -> None:
        assert (await listener.event() or {})["event"] == "beat"
        view.publish(one_survey(devices=1200))
        assert (await listener.event() or {})["event"] == "live"

    if way == "header":
        listen(app, "/api/events?last=older", talk, last_event_id=token)
    else:
        listen(app, f"/api/events?last={token}", talk)


def test_an_edition_of_another_process_is_not_taken_for_the_current_one() -> None:
    view = ShownView(one_survey())
    token = get(create_app(view), "/api/live").json["edition"]

    async def talk(listener: Listener) -> None:
        assert (await listener.event() or {})["event"] == "live"

    listen(create_app(view, poll_s=0.001), "/api/events", talk, last_event_id=token)


def test_streams_end_when_the_server_closes() -> None:
    closing = False

    async def talk(listener: Listener) -> None:
        nonlocal closing
        assert await listener.event() is not None
        closing = True
        assert await listener.event() is None

    listen(create_app(ShownView(), poll_s=0.001, closing=lambda: closing), "/api/events", talk)


def test_streams_are_bounded_and_a_reader_who_leaves_makes_room() -> None:
    app = create_app(ShownView(), poll_s=0.001, max_streams=1)

    async def run() -> None:
        async with Listener(app) as listener:
            await listener.event()
            refused = await ask(app, "/api/events")
            assert refused.status == 503
            assert refused.headers["retry-after"] == "30"
            assert refused.json["subject"] == "open streams"
        async with Listener(app) as listener:
            assert await listener.event() is not None

    asyncio.run(run())


def test_one_client_does_not_take_all_streams() -> None:
    """Addresses of one IPv6 network of 64 bits are one client."""
    app = create_app(ShownView(), poll_s=0.001, max_streams=5, max_client_streams=2)

    async def run() -> None:
        gone, statuses, readers = asyncio.Event(), [], []

        async def reader(host: str) -> None:
            asked = False

            async def receive() -> Message:
                nonlocal asked
                if not asked:
                    asked = True
                    return {"type": "http.request", "body": b"", "more_body": False}
                await gone.wait()
                return {"type": "http.disconnect"}

            async def send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])

            scope = {
                "type": "http",
                "method": "GET",
                "path": "/api/events",
                "query_string": b"",
                "headers": [],
            }
            await app({**scope, "client": (host, 1)}, receive, send)

        async def come(host: str) -> int:
            before = len(statuses)
            readers.append(asyncio.create_task(reader(host)))
            while len(statuses) == before:
                await asyncio.sleep(0)
            return int(statuses[-1])

        for _ in range(2):  # the second time all have left
            gone.clear()
            hosts = ["192.0.2.1"] * 3 + [
                "2001:db8::1",
                "2001:db8::2",
                "2001:db8::3",
                "192.0.2.2",
                "192.0.2.3",
            ]
            assert [await come(host) for host in hosts] == [200, 200, 503, 200, 200, 503, 200, 503]
            gone.set()
            await asyncio.wait_for(asyncio.gather(*readers), 20)
            readers.clear()

    asyncio.run(run())


def test_streams_are_bounded_when_all_readers_come_at_once() -> None:
    app = create_app(ShownView(), poll_s=0.001, max_streams=3)
    statuses: list[int] = []

    async def reader() -> None:
        asked = False

        async def receive() -> Message:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            while len(statuses) < 20:
                await asyncio.sleep(0)
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                await asyncio.sleep(0)

        scope = {"type": "http", "method": "GET", "path": "/api/events", "query_string": b"", "headers": []}
        await app(scope, receive, send)

    async def run() -> None:
        for _ in range(2):  # the second time all have left
            statuses.clear()
            await asyncio.wait_for(asyncio.gather(*(reader() for _ in range(20))), 20)
            assert Counter(statuses) == {200: 3, 503: 17}

    asyncio.run(run())


def test_numbers_that_json_cannot_say_are_a_bug_and_not_served() -> None:
    with pytest.raises(ValueError, match="JSON"):
        documents.to_json({"estimate": float("nan")})


def test_a_document_keeps_its_bytes_whatever_the_order_of_its_keys() -> None:
    """A release that comes back from the archive has them sorted; its entity tag must stay."""
    made = {"values": [{"label": "b", "estimate": 0.5}], "round": 0, "sealed": True}
    read = json.loads(canonical_bytes(made))
    assert list(made) != list(read)
    assert documents.etag(documents.to_json(made)) == documents.etag(documents.to_json(read))


def test_the_workers_own_view_is_served_from_its_first_moment() -> None:
    live = get(create_app(LiveView()), "/api/live").json
    assert (live["surveys"], live["accounting"]["attempts"]) == ([], 0)


def test_the_live_document_lists_the_newest_rounds_and_says_how_many_it_leaves_out(monkeypatch) -> None:
    monkeypatch.setattr(documents, "LIVE_ROUNDS", 3)
    few = [round_of(number, suppressed=number > 1) for number in range(8)]
    app = create_app(ShownView(snapshot_of(survey_of("visits", *few))))
    (shown,) = get(app, "/api/live").json["surveys"]
    # Round 2 is the newest with estimates: the page shows it, so its line is there.
    assert [line["round"] for line in shown["rounds"]] == [2, 6, 7, 8]
    assert (shown["shown"]["round"], shown["rounds_omitted"]) == (2, 4)
    (listed,) = get(app, "/api/surveys").json["surveys"]
    assert len(listed["rounds"]) == 8
    (all_of_few,) = get(create_app(ShownView(one_survey())), "/api/live").json["surveys"]
    assert (len(all_of_few["rounds"]), all_of_few["rounds_omitted"]) == (2, 0)


def test_a_round_is_rendered_once_for_all_who_ask_until_it_changes(monkeypatch) -> None:
    made: Counter[str] = Counter()
    for name in ("to_json", "to_csv"):
        render = getattr(documents, name)

        def counted(document: Any, name: str = name, render: Callable[[Any], bytes] = render) -> bytes:
            made[name] += 1
            return render(document)

        monkeypatch.setattr(f"hubbub_aggregator.web.api.{name}", counted)
    view = ShownView(one_survey())
    app = create_app(view)
    paths = ["/api/surveys", f"/api/surveys/{DIGEST}", f"/api/surveys/{DIGEST}/rounds/1"]
    first = [get(app, path).body for path in (*paths, paths[-1] + ".csv")]
    for _ in range(3):
        assert [get(app, path).body for path in (*paths, paths[-1] + ".csv")] == first
    assert made == {"to_json": 3, "to_csv": 1}
    view.publish(one_survey(mean=4.5))
    assert get(app, paths[-1]).json == view.snapshot()["surveys"][0]["rounds"][0]


def test_an_edition_keeps_a_bounded_number_of_bodies() -> None:
    edition = documents.RenderedSnapshot("x", snapshot_of())
    for key in range(3 * documents.RENDERED):
        assert edition.body(key, lambda key=key: b"%d" % key) == b"%d" % key
        assert edition.body(0, lambda: b"0") == b"0"  # used all the time, so it stays
    assert len(edition._bodies) == documents.RENDERED
    assert edition.body(0, lambda: b"other") == b"0"
    assert edition.body(1, lambda: b"again") == b"again"


def test_a_head_of_the_stream_is_answered_and_holds_no_stream() -> None:
    app = create_app(ShownView(), poll_s=0.001, max_streams=1)

    async def head() -> Answer:
        answer = Answer()

        async def receive() -> Message:
            return {"type": "http.disconnect"}  # a stream, if there were one, would end by itself

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            answer.body += message.get("body", b"")

        await app(scope("/api/events", "HEAD", {}), receive, send)
        return answer

    async def run() -> None:
        async with Listener(app) as listener:  # the only stream there may be
            assert await listener.event() is not None
            answer = await head()
        assert (answer.status, answer.body) == (200, b"")
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-accel-buffering"] == "no"

    asyncio.run(run())
