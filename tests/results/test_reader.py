"""The reader of results over a server of this test: pages, tags, tokens, errors, frames and plots."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
import pytest
import uvicorn
from shown_view import ShownView, round_of, snapshot_of, survey_of
from surveys import AGE_BY_SEX

import hubbub_results
from hubbub import Survey
from hubbub_aggregator.release.estimates import estimates
from hubbub_aggregator.web import create_app, table_facts
from hubbub_results import (
    BadAnswerError,
    NotComparableError,
    NotFoundError,
    SurveyResults,
    Table,
    connect,
)

TOKEN = "a-token-of-readers"  # noqa: S105 - of this test


def released(number: int, **more: Any) -> dict[str, Any]:
    found = round_of(number, sealed=True, mean=1.5, seed=number, **more)
    beside = {"reports": 1000, "epsilon": 0.2, "assumption": "a statement"}
    return found | {
        "consistent": {"values": [0.5, 0.3, 0.2], "categories": [0.5, 0.5]},
        "after_shuffling": beside,
    }


WORD = "a token of the tests"


@contextlib.contextmanager
def served(view: ShownView, **more: Any) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """The address of a real server over a view, and what it answered: path and status."""
    answered: list[tuple[str, int]] = []
    app = create_app(view, **more)

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        async def note(message: Any) -> None:
            if message["type"] == "http.response.start":
                answered.append((scope["path"], message["status"]))
            await send(message)

        await app(scope, receive, note)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(noting, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.002)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", answered
        finally:
            server.should_exit = True
            thread.join()


def view_of(rounds: int = 3) -> ShownView:
    return ShownView(snapshot_of(survey_of("visits", *map(released, range(rounds)), round_of(rounds))))


def test_all_pages_are_read_and_a_release_is_a_tidy_frame() -> None:
    few = [survey_of(f"s{number}", digest=f"{number:032x}") for number in range(230)]
    with served(ShownView(snapshot_of(*few, survey_of("visits", *map(released, range(3)))))) as (url, asked):
        reader = connect(url)
        assert [survey.id for survey in reader.surveys()] == [*(f"s{n}" for n in range(230)), "visits"]
        assert [path for path, _ in asked] == ["/api/v1/surveys"] * 3
        survey = reader.survey("visits")
        assert [line["round"] for line in survey.rounds()] == [1, 2, 3]
        release = survey.release()
        assert (release.round, release.is_sealed, release.devices) == (3, True, 1000)
        frame = release.frame()
        assert len(frame) == 14
        view = release.table.where(view="empirical_bayes")
        assert [row["estimate"] for row in view] == release.document["empirical_bayes"]["values"]
        sizes = release.effective_sample_size
        assert sizes == release.document["effective_sample_size"] and sizes["values"] > 100
        assert sizes["cumulative"] is None and set(sizes) == {"values", "categories", "cumulative"}
        assert release.absent is None
        assert release.after_shuffling == {"reports": 1000, "epsilon": 0.2, "assumption": "a statement"}
        assert str(frame["start"].dtype).startswith("datetime64") and str(frame["start"].dt.tz) == "UTC"
        raw = frame[(frame["view"] == "raw") & (frame["kind"] == "value")]
        assert raw["estimate"].tolist() == [cell["estimate"] for cell in release.document["values"]]
        assert raw["standard_error"].tolist() == [cell["error"] for cell in release.document["values"]]
        assert release.mean["estimate"] == frame[frame["kind"] == "mean"]["estimate"].item()
        history = survey.history(["0", "2"]).frame()
        assert history.groupby("label")["round"].apply(list).to_dict() == {"0": [1, 2, 3], "2": [1, 2, 3]}


def test_all_rounds_so_far_are_a_table_with_bands_that_hold_at_every_look() -> None:
    line = {"estimate": [0.4, 0.5], "low": [0.1, 0.3], "high": [0.7, None]}
    so_far = {"rounds": [2, 3], "devices": [200, 300], "values": [{"label": "a", **line}]}
    so_far |= {"categories": [], "mean": line}
    with served(ShownView(snapshot_of(survey_of("visits", released(0)) | {"so_far": so_far}))) as (url, _):
        survey = connect(url).survey("visits")
        table, means = survey.so_far(), survey.so_far(kind="mean")
        with pytest.raises(NotFoundError, match="none with kind 'category'"):
            survey.so_far(kind="category")
    assert list(table) == [
        {"round": 2, "devices": 200, "kind": "value", "label": "a", "estimate": 0.4}
        | {"always_low": 0.1, "always_high": 0.7},
        {"round": 3, "devices": 300, "kind": "value", "label": "a", "estimate": 0.5}
        | {"always_low": 0.3, "always_high": None},
    ]
    assert [row["label"] for row in means] == [None, None]
    assert means.frame()["always_high"].isna().tolist() == [False, True]


def test_a_notebook_shows_the_estimates_of_a_round_and_no_markup_of_the_servers() -> None:
    view = ShownView(snapshot_of(survey_of("visits", released(0), title="<b>Visits & more</b>")))
    with served(view) as (url, _):
        found = connect(url).survey("visits").release(1)
    page = found._repr_html_()
    assert page.startswith("<table><tr><th>&lt;b&gt;Visits &amp; more&lt;/b&gt;</th>") and "<b>" not in page
    assert page.count("<tr>") == 1 + sum(row["view"] == "raw" for row in found.table)
    first = next(row for row in found.table if row["view"] == "raw")
    assert f"<td>{first['label']}</td><td>{first['estimate']:.4g}</td><td>{first['low']:.4g}</td>" in page


def test_a_table_of_several_attributes_has_statistics(tmp_path: Path) -> None:
    """Shares from the crowd by hand, a census as numbers and as a file, and what is wrong in words."""
    survey, shares = Survey.parse(AGE_BY_SEX), np.array([30, 15, 1, 15, 33, 2, 1, 2, 1]) / 100
    found = round_of(0, sealed=True, devices=20000)
    found |= estimates(survey, survey.estimator().expected_estimate(shares, 20000), level=0.95, asked=None)
    known = survey_of("age-by-sex", found) | {"table": table_facts(survey)}
    with served(ShownView(snapshot_of(known, survey_of("visits", released(0), digest="2" * 32)))) as (url, _):
        table = connect(url).survey("age-by-sex").release().table
        within = table.conditional("age", given="sex")
        assert [(row["group"], row["reading"]) for row in within][:2] == [("f", "child"), ("f", "youth")]
        assert within.frame()["estimate"].tolist() == pytest.approx([2 / 3, 1 / 3, 15 / 48, 33 / 48])
        census = tmp_path / "census.csv"
        census.write_text("reading,share\nf,0.5\nm,0.5\n")
        sized = table.reweighted("age", by="sex", census=census)
        assert [row["estimate"] for row in sized] == pytest.approx(
            [(2 / 3 + 15 / 48) / 2, (1 / 3 + 33 / 48) / 2]
        )
        assert list(sized) == list(
            table.where(kind="value").reweighted("age", by="sex", census={"f": 0.5, "m": 0.5})
        )
        assert [len(each) for each in (table.differences("age", given="sex"), table.independence())] == [2, 1]
        assert len(table.odds_ratios("age", given="sex", level=0.9)) == 4
        assert [row["reading"] for row in table.regression("sex", on=["age"])] == ["intercept", "age: youth"]
        with pytest.raises(BadAnswerError, match="a mean must be of an integer read by value, got age"):
            table.group_means("age", given="sex")
        with pytest.raises(NotComparableError, match="statistics must be of a cross table"):
            connect(url).survey("visits").release().table.independence()
        with pytest.raises(NotFoundError, match="statistics must be asked of the table of one round"):
            connect(url).survey("age-by-sex").table().independence()


def test_what_has_not_changed_is_fetched_once() -> None:
    view = view_of()
    with served(view) as (url, asked):
        survey = connect(url).survey("visits")
        first = [survey.release(2).frame().to_csv() for _ in range(3)]
        assert len(set(first)) == 1
        statuses = [status for path, status in asked if "rounds/2" in path]
        assert statuses == [200, 200, 304, 304, 304, 304]
        view.publish(snapshot_of(survey_of("visits", released(0), released(1, devices=4000))))
        assert survey.release(2).devices == 4000


def test_alerts_are_rows_with_their_round() -> None:
    alert = {
        "kind": "jump",
        "family": "values",
        "label": "1",
        "statistic": 0.4,
        "threshold": 0.2,
        "rate": 5e-4,
    }
    lines = [
        {"round": number, "devices": 900, "since": number - 1, "judged": True, "margin": 0.01}
        | {"alerts": [alert] * (number == 2), "omitted": {"impossible": 0, "jump": 0}}
        for number in (1, 2)
    ]
    found = {"rate": 0.001, "margin_share": 0.001, "rounds": lines}
    survey = survey_of("visits", *map(released, range(3))) | {"alerts": found}
    with served(ShownView(snapshot_of(survey))) as (url, _):
        rows = connect(url).survey("visits").alerts()
    assert rows == [{"round": 2, "devices": 900, "since": 1} | alert]


def test_recounts_are_documents_beside_a_release() -> None:
    without = {"recount": {"without_issuers": ["leaky.example.org"]}}
    rounds = survey_of("visits", *map(released, range(2)))
    rounds["recounts"] = [rounds["rounds"][1] | {"devices": 700} | without]
    with served(ShownView(snapshot_of(rounds))) as (url, _):
        survey = connect(url).survey("visits")
        assert survey.recounts(1) == []
        (found,) = survey.recounts()
        assert (found["devices"], found["recount"]) == (700, without["recount"])
        assert survey.release().devices == 1000


def test_a_change_is_the_servers_with_its_intervals() -> None:
    with served(view_of()) as (url, _):
        survey = connect(url).survey("visits")
        rows = {row["label"]: row for row in survey.compare(1, 3).rows if row["kind"] == "value"}
        before, after = (
            {cell["label"]: cell for cell in survey.release(n).document["values"]} for n in (1, 3)
        )
        assert [row["kind"] for row in survey.compare(1, 3).rows] == ["value"] * 3 + ["category"] * 2 + [
            "mean"
        ]
    for label, row in rows.items():
        assert row["change"] == after[label]["estimate"] - before[label]["estimate"]
        assert row["low"] < row["change"] < row["high"]


def test_a_change_may_reach_back_to_another_survey_of_the_same_attributes() -> None:
    old, new, other = (survey_of(name, released(0), digest=name[0] * 32) for name in ("a", "b", "c"))
    new["attributes"] = old["attributes"]
    with served(ShownView(snapshot_of(old, new, other))) as (url, _):
        reader = connect(url)
        later = reader.survey("b")
        found = later.compare(1, 1, earlier=reader.survey("a"))
        assert found.document["before"] == {"digest": "a" * 32, "round": 1}
        with pytest.raises(hubbub_results.NotComparableError, match="same attributes, got c and a"):
            later.compare(1, 1, earlier=reader.survey("c"))


def test_rounds_that_cannot_be_compared_say_why() -> None:
    hidden = survey_of("visits", released(0), released(1, suppressed=True))
    with (
        served(ShownView(snapshot_of(hidden))) as (url, _),
        pytest.raises(hubbub_results.NotComparableError, match="too few devices"),
    ):
        connect(url).survey("visits").compare(1, 2)


def test_a_token_is_sent_from_the_call_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUBBUB_READ_TOKEN", raising=False)
    with served(view_of(), read_token=TOKEN) as (url, _):
        assert connect(url, token=TOKEN).surveys()[0].id == "visits"
        with pytest.raises(hubbub_results.UnauthorizedError, match="give connect") as raised:
            connect(url, token=TOKEN[::-1]).surveys()
        assert TOKEN[::-1] not in str(raised.value)
        monkeypatch.setenv("HUBBUB_READ_TOKEN", TOKEN)
        assert connect(url).surveys()[0].id == "visits"
        assert TOKEN not in repr(connect(url))


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda reader: reader.survey("none"), "NotFoundError", "survey must be the digest"),
        (lambda reader: reader.survey("visits").release(9), "NotFoundError", "must be one from 1 to 4"),
        (lambda reader: reader.survey("../../live"), "BadAnswerError|NotFoundError", "must be"),
        (lambda reader: reader.survey("visits").history(["x"]), "NotFoundError", "none with label 'x'"),
    ],
)
def test_what_is_not_there_is_said(ask: Callable[[Any], object], error: str, said: str) -> None:
    with served(view_of()) as (url, _), pytest.raises(hubbub_results.ResultsError, match=said) as raised:
        ask(connect(url))
    assert type(raised.value).__name__ in error.split("|")


def test_no_server_and_no_address_are_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(
        hubbub_results.UnreachableError, match=r"surveys must answer, got connection refused$"
    ):
        connect(f"http://127.0.0.1:{port}", timeout_s=1.0).surveys()
    for url in ("", "127.0.0.1:8780", "ftp://host", "http://"):
        with pytest.raises(ValueError, match="url must begin with http"):
            connect(url)
    for url in ("http://host/?survey=1", "https://me:word@host", "http://host#x"):
        with pytest.raises(ValueError, match="url must end after host, port and path, got one with") as error:
            connect(url)
        assert "word" not in str(error.value)


def test_a_token_goes_by_https_to_this_machine_or_where_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = (
        "http://127.0.0.1:8780",
        "http://[::1]",
        "http://localhost",
        "http://a.localhost",
        "https://far.example",
    )
    far = ("http://far.example", "http://10.0.0.7:8780", "http://127.0.0.1.far.example", "HTTP://far.example")
    for url in here:
        connect(url, token=WORD)
    for url in far:
        connect(url)  # nothing that is secret goes there
        with pytest.raises(
            ValueError, match=r"a token must go by https://.*plain_http='anywhere'.*got 'http"
        ):
            connect(url.lower(), token=WORD)
        connect(url, token=WORD, plain_http="anywhere")
        monkeypatch.setenv("HUBBUB_READ_TOKEN", WORD)
        with pytest.raises(ValueError, match="a token must go by https://"):
            connect(url)
        monkeypatch.delenv("HUBBUB_READ_TOKEN")


def test_a_next_page_on_another_server_is_not_asked_for() -> None:
    asked: list[str] = []

    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"surveys": [], "next": null}'})

    view = view_of()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[__name__], "create_app", lambda *_, **__: elsewhere)
        with served(view) as (other, _):

            async def leads_away(scope: Any, receive: Any, send: Any) -> None:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                body = f'{{"surveys": [], "next": "{other}/api/v1/surveys"}}'.encode()
                await send({"type": "http.response.body", "body": body})

            patch.setattr(sys.modules[__name__], "create_app", lambda *_, **__: leads_away)
            with served(view) as (url, _), pytest.raises(hubbub_results.BadAnswerError, match="next page"):
                connect(url, token=WORD).surveys()
    assert asked == []


def test_what_a_hostile_server_nests_is_a_bad_answer() -> None:
    async def deep(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": 100_000 * b"["})

    view = view_of()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[__name__], "create_app", lambda *_, **__: deep)
        with served(view) as (url, _):
            transport = connect(url)._transport
            for ask in (transport.get, transport.rows):
                with pytest.raises(BadAnswerError, match="got other bytes"):
                    ask("surveys")


NONSENSE: Final = (
    *(b"{}", b"[]", b"7", b"null", b'"x"', b'{"surveys": 7, "rounds": 7, "next": null}'),
    *(b'{"surveys": [7], "rounds": [7], "next": null}', b'{"surveys": [{}], "rounds": [{}], "next": 7}'),
    *(b'{"round": 1}', b'{"rounds": [{"round": "x", "sealed": 1}], "next": null}'),
)


def test_whatever_a_server_answers_is_an_error_of_the_reader() -> None:
    body = b""

    async def mad(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    facts = {"id": "x", "version": 1, "digest": "00", "title": "t", "epsilon": {"certified": 1.0}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[__name__], "create_app", lambda *_, **__: mad)
        with served(view_of()) as (url, _):
            reader = connect(url)
            survey = SurveyResults(facts, reader._transport)
            asks: tuple[Callable[[], object], ...] = (
                *(reader.surveys, lambda: reader.survey("x"), survey.rounds, survey.release, survey.recounts),
                *(survey.history, survey.so_far, survey.alerts, lambda: survey.compare(1, 2)),
            )
            for body in NONSENSE:
                for ask in asks:
                    with pytest.raises(BadAnswerError, match="must be as the read API gives it"):
                        print(body, ask())


def test_another_server_is_no_hubbub() -> None:
    async def other(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b"<html>"})

    view = view_of()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[__name__], "create_app", lambda *_, **__: other)
        with (
            served(view) as (url, _),
            pytest.raises(hubbub_results.BadAnswerError, match="must be one of Hubbub"),
        ):
            connect(url).surveys()


def test_plots_show_points_bands_and_changes() -> None:
    mpl.use("Agg")
    with served(view_of()) as (url, _):
        survey = connect(url).survey("visits")
        points = survey.release().plot()
        assert [text.get_text() for text in points.get_xticklabels()] == ["0", "1", "2"]
        bands = survey.history().plot()
        assert bands.get_legend() is None
        assert {text.get_text() for text in bands.texts} == {"0", "1", "2"}  # beside their lines
        assert len(bands.collections) == 3
        assert bands.lines[0].get_xdata().tolist() == [1, 2, 3]  # people count rounds from 1
        mean = survey.history(kind="mean").plot()
        assert mean.get_ylabel() == "mean"
        changes = survey.compare(1, 2).plot()
        assert changes.get_title() == "Visits to a doctor: round 1 to 2"
    from matplotlib import pyplot

    pyplot.close("all")


def cell(label: str, round_: int, estimate: float) -> dict[str, object]:
    return {
        "view": "raw",
        "kind": "value",
        "label": label,
        "round": round_,
        "estimate": estimate,
        "low": estimate - 0.01,
        "high": estimate + 0.01,
    }


def test_plots_of_many_long_labels_are_read_whole_and_rounds_are_whole() -> None:
    mpl.use("Agg")
    from matplotlib import pyplot
    from matplotlib.text import Text

    labels = [f"a label of thirty letters, no. {i:02}" for i in range(34)]
    points = Table([cell(label, 0, 0.03) for label in labels], "many").plot()
    box = points.figure.bbox
    points.figure.canvas.draw()
    spans = [text.get_window_extent() for text in points.get_yticklabels()]
    assert all(box.x0 <= span.x0 and span.x1 <= box.x1 for span in spans)
    assert all(box.y0 <= span.y0 and span.y1 <= box.y1 for span in spans)
    assert {text.get_text() for text in points.get_yticklabels()} == set(labels)
    # Every name has a line of its own: none stands over its neighbour.
    heights = sorted((span.y0, span.y1) for span in spans)
    assert all(above[0] >= below[1] - 1.0 for below, above in pairwise(heights))

    two = [cell(label, round_, 0.03 + 1e-4 * i) for i, label in enumerate(labels) for round_ in (0, 1)]
    bands = Table(two, "many").plot()
    bands.figure.canvas.draw()
    assert bands.get_legend() is None
    assert all(tick == int(tick) for tick in bands.get_xticks())
    assert {text.get_text() for text in bands.texts} == set(labels)
    named = [Text.get_window_extent(text) for text in bands.texts]  # without the lines that lead to them
    assert all(span.x1 <= bands.figure.bbox.x1 for span in named)
    placed = sorted((span.y0, span.y1) for span in named)
    assert all(above[0] >= below[1] - 1.0 for below, above in pairwise(placed))
    pyplot.close("all")


def test_to_read_loads_no_pandas_no_matplotlib_and_nothing_of_the_server() -> None:
    code = (
        "import sys, hubbub_results\n"
        "hubbub_results.connect('http://127.0.0.1:1')\n"
        "names = {name.split('.')[0] for name in sys.modules}\n"
        "print(*sorted(names & {'pandas', 'matplotlib', 'numpy', 'starlette', 'hubbub_aggregator', "
        "'hubbub_client', 'hubbub_collector'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(hubbub_results.MissingExtraError, match=r"pandas must be .*hubbub\[results\]"):
        hubbub_results.Table([]).frame()


def test_a_release_of_sets_says_how_far_true_shares_may_be_above() -> None:
    rows = [("mail", "", 0.4), ("more than 3", "", 0.123), ("missing", "", 0.0)]
    found = released(0, shares=rows, noise=0.1, devices=10_000) | {"categories": []}
    found["consistent"]["values"], found["consistent"]["categories"] = [0.4, 0.1, 0.0], []
    with served(ShownView(snapshot_of(survey_of("apps", found)))) as (url, _):
        release = connect(url).survey("apps").release()
    row = found["values"][1]
    said = f"{100 * row['estimate']:.1f} points more ({100 * row['high']:.1f} with noise)."
    assert release.unsent.startswith("Devices with more than 3 items ") and release.unsent.endswith(said)
    assert said in release._repr_html_()
    found["values"][1]["label"] = "more than enough"
    with served(ShownView(snapshot_of(survey_of("apps", found)))) as (url, _):
        assert connect(url).survey("apps").release().unsent == ""
