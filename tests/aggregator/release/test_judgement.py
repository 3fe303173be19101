"""Alerts of releases: the same from releases alone, in whatever order they come and after every restart."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asgi_reader import get
from prometheus_client import CollectorRegistry, generate_latest
from shown_view import ShownView, round_of, snapshot_of, survey_of
from surveys import ACTIVITY, LABELS

from hubbub import Survey
from hubbub.errors import ParameterError
from hubbub.estimation import AlertRules
from hubbub.testing import seeded
from hubbub_aggregator.counting.issuers import IssuerTally
from hubbub_aggregator.counting.partition import PartitionState, RoundState
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release import (
    KEPT_ROUNDS,
    AcceptedCounts,
    Release,
    ReleaseJudge,
    Shown,
    SurveyAlerts,
    judgement,
    release,
)
from hubbub_aggregator.web import create_app
from hubbub_aggregator.web.metrics import ViewCollector
from hubbub_deploy.cli import main
from hubbub_deploy.errors import DeployError
from hubbub_deploy.release_options import add_alerts, alert_rules

HEALTH = Survey.parse(LABELS)


def document(number: int, *, devices: int = 4000, fakes: int = 0, survey: Survey = HEALTH) -> dict[str, Any]:
    """A release of seeded devices, and of forged reports of the symbol 0, counted like any other."""
    inputs = np.arange(devices) % survey.channel.inputs
    counts = survey.channel.tally(survey.channel.perturb(inputs, source=seeded(number)))
    counts[0] += fakes
    tally = AcceptedCounts({0: 1}, counts, devices + fakes)
    return json.loads(json.dumps(Release(survey, number, "sealed", tally, VerdictCounts()).document()))


def judged(
    *releases: dict[str, Any], rules: AlertRules | None = None, at_once: bool = True
) -> dict[str, Any]:
    found = SurveyAlerts(ReleaseJudge(rules or AlertRules()), HEALTH, HEALTH.estimator())
    known = {release["round"]: release for release in releases}
    if at_once:
        found.update(known, known)
    else:
        shown: dict[int, dict[str, Any]] = {}
        for release in releases:
            shown[release["round"]] = release
            found.update(shown, [release["round"]])
    return found.document()


def test_forged_reports_raise_a_jump_there_and_back_and_honest_rounds_raise_none() -> None:
    found = judged(document(0), document(1), document(2, fakes=2000), document(3))
    assert [line["round"] for line in found["rounds"]] == [1, 2, 3, 4]
    assert [line["since"] for line in found["rounds"]] == [None, 1, 2, 3]
    assert [{alert["kind"] for alert in line["alerts"]} for line in found["rounds"]] == [
        set(), set(), {"impossible", "jump", "joint"}, {"jump", "joint"},
    ]  # fmt: skip
    up, down = (
        next(
            alert
            for alert in found["rounds"][number]["alerts"]
            if (alert["kind"], alert["label"]) == ("jump", HEALTH.input_labels[0])
        )
        for number in (2, 3)
    )
    assert up["statistic"] > up["threshold"] > 0 > down["threshold"] > down["statistic"]
    assert up["rate"] == found["rate"] / 4
    assert (up["window"], up["against"]) == (1, 2)
    before = np.mean([document(number)["values"][0]["estimate"] for number in range(2)])
    after = document(2, fakes=2000)["values"][0]["estimate"]
    assert up["statistic"] == pytest.approx(after - before, rel=1e-12)


def test_a_slow_rise_is_found_in_a_window_and_a_static_survey_has_none() -> None:
    """Forged reports, a thirtieth of a round: no pair of rounds shows them, and some rounds together do."""
    releases = [document(number, fakes=130 * (number >= 20)) for number in range(36)]
    lines = judged(*releases)["rounds"]
    raised = [
        (line["round"], alert["window"], alert["against"], alert["kind"])
        for line in lines
        for alert in line["alerts"]
        if alert["kind"] in ("jump", "joint")
    ]
    assert raised and min(number for number, *_ in raised) > 21
    number, window, against, _ = raised[0]
    assert window > 1 and window + against == number
    static = Survey.parse(LABELS.replace('"evolving"', '"static"'))
    found = SurveyAlerts(ReleaseJudge(AlertRules()), static, static.estimator())
    same = {each["round"]: each for each in releases}
    found.update(same, same)
    assert [line["alerts"] for line in found.document()["rounds"]] == [[]] * 36


def test_a_start_amid_many_releases_finds_what_was_found_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "BLOCK", 4)
    monkeypatch.setattr(judgement, "KEPT_ROUNDS", 7)
    releases = [document(number, fakes=600 * (number // 5 % 2)) for number in range(27)]
    rules = AlertRules(rate=0.1)
    at_start = judged(*releases, rules=rules)
    assert at_start == judged(*releases, rules=rules, at_once=False)
    assert [line["round"] for line in at_start["rounds"]] == list(range(21, 28))
    alerts = [alert for line in at_start["rounds"] for alert in line["alerts"] if "window" in alert]
    assert alerts and all(alert["window"] + alert["against"] <= 8 for alert in alerts)


def test_the_order_of_releases_changes_nothing() -> None:
    releases = [document(number, fakes=1500 * (number == 1)) for number in range(4)]
    one_by_one = judged(*(releases[place] for place in (3, 0, 2, 1)), at_once=False)
    assert one_by_one == judged(*releases)


def test_rounds_without_estimates_are_passed_over() -> None:
    small = document(1, devices=20)
    assert small["suppressed"]
    found = judged(document(0), small, document(2))
    assert [(line["round"], line["since"]) for line in found["rounds"]] == [(1, None), (3, 1)]


def test_the_newest_releases_are_kept_and_judged() -> None:
    first = document(0)
    releases = [{**first, "round": number} for number in range(KEPT_ROUNDS + 5)]
    found = judged(*releases)
    assert [line["round"] for line in found["rounds"]] == list(range(5, KEPT_ROUNDS + 5))


def test_a_margin_is_that_of_the_largest_value_and_an_alert_below_its_share() -> None:
    release = document(0)
    largest = max(range(len(release["values"])), key=lambda i: release["values"][i]["estimate"])
    reports = release["poison_margin"]["values"][largest]
    (line,) = judged(release, rules=AlertRules(margin_share=0.0))["rounds"]
    assert line["margin"] == pytest.approx(reports / (4000 + reports)) and line["alerts"] == []
    (line,) = judged(release, rules=AlertRules(margin_share=0.9))["rounds"]
    assert [(alert["kind"], alert["label"], alert["rate"]) for alert in line["alerts"]] == [
        ("margin", release["values"][largest]["label"], 0.0)
    ]


def test_a_score_beyond_its_ends_is_impossible() -> None:
    score = Survey.parse(ACTIVITY)
    found = SurveyAlerts(ReleaseJudge(AlertRules()), score, score.estimator())
    found.update({0: document(0, survey=score, fakes=20_000)}, [0])
    (line,) = found.document()["rounds"]
    assert [(alert["kind"], alert["family"], alert["label"]) for alert in line["alerts"]] == [
        ("impossible", "mean", None)
    ]
    assert line["margin"] is None


class Silent:
    """An estimator of a channel that knows no bounds."""

    category_of = np.arange(2)

    def expected_estimate(self, frequencies: Any, n: int) -> Any:
        raise ParameterError("a reach must be known, got none")


def test_a_channel_without_bounds_is_released_and_not_judged(caplog: pytest.LogCaptureFixture) -> None:
    found = SurveyAlerts(ReleaseJudge(AlertRules(margin_share=0.0)), HEALTH, Silent())
    found.update({0: document(0), 1: document(1, fakes=2000)}, [0, 1])
    lines = found.document()["rounds"]
    assert [(line["judged"], line["alerts"]) for line in lines] == [(False, []), (False, [])]
    assert (
        caplog.text.count("releases of survey self-rated-health are not judged: a reach must be known") == 1
    )


def shown() -> ShownView:
    alerts = judged(document(0), document(1, fakes=3000), rules=AlertRules(margin_share=0.0))
    survey = survey_of("visits", *(round_of(number, sealed=True) for number in range(2)))
    return ShownView(snapshot_of(survey | {"alerts": alerts}))


def test_the_api_and_the_page_have_the_alerts_and_facts_of_surveys_do_not() -> None:
    app = create_app(shown())
    alerts = get(app, "/api/v1/surveys/visits/alerts").json
    assert alerts["survey"]["id"] == "visits"
    assert (alerts["rate"], [len(line["alerts"]) > 0 for line in alerts["rounds"]]) == (0.001, [False, True])
    (live,) = get(app, "/api/live").json["surveys"]
    assert live["alerts"]["rounds"] == alerts["rounds"][1:]
    assert "alerts" not in get(app, "/api/surveys").json["surveys"][0]
    refused = get(app, "/api/v1/surveys/visits/alerts?kind=jump")
    assert refused.status == 400
    silent = create_app(ShownView(snapshot_of(survey_of("visits", round_of(0)))))
    assert get(silent, "/api/v1/surveys/visits/alerts").json["rounds"] == []


def test_metrics_count_the_alerts_of_the_newest_release() -> None:
    registry = CollectorRegistry()
    registry.register(ViewCollector(shown()))
    text = generate_latest(registry).decode()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    name = 'survey="visits",version="1"'
    assert float(lines[f'hubbub_alerts{{kind="jump",{name}}}']) >= 1
    assert lines[f'hubbub_alerts{{kind="margin",{name}}}'] == "0.0"
    assert 0 < float(lines[f"hubbub_poisoning_margin{{{name}}}"]) < 1
    assert lines[f"hubbub_alert_false_alarm_rate{{{name}}}"] == "0.001"


def test_thresholds_are_options() -> None:
    parser = argparse.ArgumentParser()
    add_alerts(parser)
    given = parser.parse_args(["--alert-rate", "0.01", "--alert-margin", "0"])
    assert alert_rules(given) == AlertRules(0.01, 0.0)
    assert alert_rules(parser.parse_args([])) == AlertRules()
    with pytest.raises(DeployError, match="alert rate must lie strictly between 0 and 1, got 2"):
        alert_rules(parser.parse_args(["--alert-rate", "2"]))


def test_a_node_refuses_thresholds_out_of_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey = tmp_path / "labels.toml"
    survey.write_text(LABELS, encoding="utf-8")
    words = ["node", str(survey), "--data", str(tmp_path / "data"), "--port", "0", "--alert-margin", "1"]
    assert main(words) == 1
    assert "margin share must be at least 0 and below 1, got 1.0" in capsys.readouterr().err


def test_an_issuer_whose_reports_are_unlike_the_others_raises_an_alert() -> None:
    channel = HEALTH.channel
    random = np.random.default_rng(11)
    honest = random.multinomial(4000, channel.expected(np.full(channel.inputs, 1.0 / channel.inputs)))
    states = {}
    for forged in (0, 400):
        mine, others = honest // 2, honest - honest // 2
        mine[3] += forged
        known = RoundState(counts=mine + others, issuers={"a": IssuerTally(mine, int(mine.sum()), 2, 1)})
        known.issuers["b"] = IssuerTally(others, int(others.sum()))
        known.sealed_at = 9
        known.verdicts = VerdictCounts(attempts=int(known.counts.sum()), accepted=int(known.counts.sum()))
        states[forged] = PartitionState(surveys={HEALTH.digest: HEALTH}, rounds={(HEALTH.digest, 0): known})
    found = {}
    for forged, state in states.items():
        released = release(HEALTH, 0, {0: state, 1: state})
        assert released is not None
        made = json.loads(json.dumps(released.beside(Shown()).document()))
        assert [line["issuer"] for line in made["issuers"]] == ["a", "b"]
        assert made["issuers"][0]["duplicate"] == 4
        found[forged] = judged(made)["rounds"][0]
    assert [alert for alert in found[0]["alerts"] if alert["kind"] == "issuer"] == []
    assert found[0]["omitted"]["issuer"] == 0
    raised = [alert for alert in found[400]["alerts"] if alert["kind"] == "issuer"]
    assert {alert["label"] for alert in raised} == {"a", "b"}
    assert all(alert["statistic"] <= alert["threshold"] == AlertRules().rate / 3 / 2 for alert in raised)
