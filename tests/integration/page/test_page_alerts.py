"""The page and the alerts of a round: in words, with the rate of false ones, or a quiet line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browser import Browser
from page_site import A, Site, complaints, exactly, on, opened, plain, until
from selenium.webdriver.common.by import By
from shown_view import snapshot_of, survey_of


def alert(kind: str, statistic: float, threshold: float, **more: Any) -> dict[str, Any]:
    facts = {"kind": kind, "family": "values", "label": "<b>1</b>", "rate": 0.0005}
    return facts | {"statistic": statistic, "threshold": threshold} | more


def judged(number: int, *alerts: dict[str, Any], **more: Any) -> dict[str, Any]:
    line = {"round": number, "devices": 1000, "since": number - 1 if number > 1 else None, "judged": True}
    return line | {"margin": 0.01, "alerts": list(alerts), "omitted": {"impossible": 0, "jump": 0}} | more


def site_of(*lines: dict[str, Any]) -> dict[str, Any]:
    rounds = [
        exactly(("1", "some", 0.5), ("2", "some", 0.5), index=line["round"] - 1, sealed=True)
        for line in lines
    ]
    alerts = {"rate": 0.001, "margin_share": 0.001, "rounds": list(lines)}
    attributes = [{"id": "x", "kind": "evolving"}]
    return snapshot_of(survey_of("x", *rounds, digest=A) | {"alerts": alerts, "attributes": attributes})


def said(browser: Browser) -> list[str]:
    found = browser.find_elements(By.CSS_SELECTOR, ".alerts h3, .alerts li, .alerts p")
    return [plain(each.text) for each in found if each.is_displayed()]


def test_alerts_are_told_in_words_and_quiet_rounds_say_so(
    browser: Browser, open_site: Callable[[dict[str, Any]], Site]
) -> None:
    raised = judged(
        2,
        alert("impossible", 1.112, 1.04),
        alert("impossible", -0.3, -0.21, label="2"),
        alert("impossible", 1.4, 1.2, family="total", label=None),
        alert("jump", -0.051, -0.032),
        alert("jump", 0.021, 0.02, label="2", window=4, against=12),
        alert("joint", 71.26, 58.04, label=None, window=1, against=7),
        alert("margin", 0.0004, 0.001, rate=0.0),
        alert("issuer", 3.21e-12, 0.0002, family="issuers", label="tokens.example"),
        omitted={"impossible": 3, "jump": 4},
    )
    site = open_site(site_of(judged(1), raised))
    opened(browser, site, on(A))
    until(
        browser,
        [
            "Alerts",
            "“<b>1</b>” shows 111.2 %; any population gives at most 104.0 %.",
            "“2” shows \u221230.0 %; any population gives at least \u221221.0 %.",
            "All values together show 140 %; any population gives at most 120 %.",
            "“<b>1</b>” fell by 5.1 points since round 1; noise alone stays within 3.2. People changed, or "
            "reports were forged.",
            "“2” rose by 2.1 points in the last 4 rounds beside the 12 rounds before; noise alone stays "
            "within 2.0. People changed, or reports were forged.",
            "All values together changed in the last round beside the 7 rounds before by more than noise, "
            "though perhaps no single one did: a squared distance of 71.3, where noise alone stays within "
            "58.0. People changed, or reports were forged.",
            "Few forged reports, 0.040 % of all, would move “<b>1</b>” by its margin of error. This is no "
            "sign that there are any.",
            "The reports that “tokens.example” vouched for are distributed otherwise than all others' "
            "(chance: at most 3.2e-12). Its devices are other people, or reports were forged.",
            "7 more; the API has their number by kind.",
            "No more than about one honest round in 1,000 raises an alert; compared with round 1 "
            "and those before it.",
        ],
        lambda: said(browser),
    )
    site.view.publish(site_of(judged(1)))
    quiet = (
        "No more than about one honest round in 1,000 raises an alert; there is no earlier round to compare "
        "it with."
    )
    until(browser, ["No alerts", quiet], lambda: said(browser))
    site.view.publish(site_of(judged(1, judged=False)))
    unbounded = "Surveys of so many values that are asked by levels are not judged."
    until(browser, ["No alerts", unbounded], lambda: said(browser))
    site.view.publish(snapshot_of(survey_of("x", exactly(("1", "some", 1.0), sealed=True), digest=A)))
    until(browser, [], lambda: said(browser))
    assert complaints(browser) == []
