"""The owner's page as HTML: no script, every text escaped."""

from __future__ import annotations

import math
from html import escape
from typing import Final

from hubbub.survey import number_of_round
from hubbub_client.owner_page import descriptions
from hubbub_client.owner_page.account import Account, Asked, Refused
from hubbub_client.upload.outcomes import SentReport

_SHOWN: Final = 100
"""Reports of one survey that the page shows, the newest; `hubbub agent sent` has all."""

STYLE_LINK: Final = '<link rel="stylesheet" href="page.css">'
"""The one link of a page; a page that is saved by itself has the style in its place."""

_STATES: Final = {
    "active": "taking part",
    "left": "left",
    "cancelled": "cancelled for good",
}


def document(account: Account) -> bytes:
    """Return the whole page."""
    if account.paused:
        state, verb, label = "Paused: nothing is answered, nothing is sent.", "resume", "Resume"
    else:
        state, verb, label = "Surveys that you joined are answered when they ask.", "pause", "Pause"
    surveys = "".join(map(_survey, account.surveys)) or "<p>This device takes part in no survey.</p>"
    return _page(
        f"""<header><div><h1>What this device has said about you</h1><p id="state">{state}</p></div>
{_button(verb, label)}</header>
{_learned(account)}
<h2>Surveys</h2>{surveys}
{_refusals(account.refusals)}
{_forget(account)}"""
    )


def message(text: str) -> bytes:
    """Return a page that says one thing."""
    return _page(f'<header><h1>Hubbub</h1></header><p>{escape(text)}</p><p><a href="./">Look again</a></p>')


def _page(body: str) -> bytes:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>What this device has said about you</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">{STYLE_LINK}</head>
<body><main>{body}</main></body></html>
""".encode()


def _button(action: str, label: str, *, fields: str = "", kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return (
        f'<form method="post" action="{action}">{fields}<button id="{action}"{style}>{label}</button></form>'
    )


def _learned(account: Account) -> str:
    rows = [_row(", ".join(part.attributes), part.loss) for part in account.parts]
    if account.forgotten > 0:
        rows.append(_row("before you had it forgotten", account.forgotten))
    head = "<thead><tr><th>Part of your record</th><th>odds</th><th>loss</th></tr></thead>"
    table = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>" if rows else ""
    unit = (
        '<p class="note">A loss of 0.7 is odds of 2 to 1, one of 1.4 is 4 to 1: where odds multiply, losses '
        "add up. The epsilon of a survey is the most that one answer to it can lose.</p>"
    )
    waiting = ""
    if account.waiting:
        waits = "1 answer waits" if account.waiting == 1 else f"{account.waiting} answers wait"
        waiting = (
            f'<p id="waiting">{waits} to be sent and will be shown then: whoever looked before could keep an '
            "answer back, and the survey would be wrong. Until then it counts at its worst.</p>"
        )
    example = descriptions.example(account.loss)
    learned = descriptions.learned(account.loss, "From everything this device ever answered")
    return f"""<section class="card" id="learned"><h2>What anybody can have learned</h2>
<p class="main">{escape(learned)}</p>
<p>{escape(example)} This holds for everybody who sees all answers together, for good.</p>
{_bar(account)}
<dl><div><dt class="spent">spent</dt><dd id="spent">{_up(account.loss)}</dd></div>
<div><dt class="reserved">reserved for what you joined</dt><dd id="reserved">{account.reserved:.3f}</dd></div>
<div><dt class="left">left</dt><dd id="left">{_down(account.left)}</dd></div>
<div><dt>budget for life</dt><dd>{account.budget:g}</dd></div></dl>
{_window(account)}{table}{unit}{waiting}</section>"""


def _window(account: Account) -> str:
    if account.window <= 0:
        return ""
    since = ", since you had it forgotten" if account.forgotten > 0 else ""
    return (
        f'<p id="window">In any 7 days{since}: about what changed within them alone, all answers together, '
        f"those to come included, change odds by a factor of at most {descriptions.factor(account.window)} "
        f"(loss {_up(account.window)}). What stays the same about you is not in this number.</p>"
    )


def _bar(account: Account) -> str:
    spent = min(100 * account.loss / account.budget, 100)
    both = min(spent + 100 * account.reserved / account.budget, 100)
    parts = (("left", 100.0), ("reserved", both), ("spent", spent))
    drawn = "".join(f'<rect class="{name}" width="{width:.2f}" height="4"/>' for name, width in parts)
    label = 'role="img" aria-label="spent, reserved and left of the budget"'
    return f'<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" {label}>{drawn}</svg>'


def _row(name: str, loss: float) -> str:
    factor = f"at most {descriptions.factor(loss)} to 1"
    return f"<tr><th>{escape(name)}</th><td>{factor}</td><td>{_up(loss)}</td></tr>"


def _survey(asked: Asked) -> str:
    survey = asked.survey
    leave = ""
    if asked.state == "active":
        field = f'<input type="hidden" name="survey" value="{survey.digest.hex()}">'
        leave = _button("opt-out", "Leave this survey", fields=field) + (
            '<p class="note">Nothing more is answered, and what waits is withdrawn. What was sent stays '
            "sent, what was reserved stays reserved.</p>"
        )
    shown = asked.sent[-_SHOWN:][::-1]
    more = len(asked.sent) - len(shown)
    reports = "".join(_report(asked, report) for report in shown)
    if more:
        reports += f"<p>{more} older ones: hubbub agent sent</p>"
    sent = (
        f"<details><summary>The exact bytes ({len(asked.sent)})</summary>{reports}</details>" if shown else ""
    )
    return f"""<section class="card survey" id="survey-{survey.digest.hex()}" data-state="{asked.state}">
<h3>{escape(survey.title)}</h3>
<p class="note">{escape(survey.id)}, version {survey.version}: {_STATES[asked.state]}</p>
<dl class="facts"><div><dt>asked</dt><dd>{escape(descriptions.asked(survey))}</dd></div>
<div><dt>how</dt><dd>{escape(descriptions.mechanism(survey))}</dd></div>
<div><dt>when</dt><dd>{escape(descriptions.schedule(survey))}</dd></div>
<div><dt>sent</dt><dd>{escape(descriptions.progress(asked))}</dd></div></dl>
{sent}{leave}</section>"""


def _report(asked: Asked, report: SentReport) -> str:
    said = descriptions.symbol(asked.survey, report.symbol)
    facts = (
        ("survey", f"<code>{report.digest.hex()}</code>"),
        ("report", f"<code>{report.id.hex()}</code>"),
        ("round", str(number_of_round(report.round))),
        ("says", escape(said)),
    )
    listed = "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in facts)
    number, fate = number_of_round(report.round), escape(descriptions.fate(report.outcome))
    return f"""<div class="report"><p>Round {number}: {fate}</p>
<pre>{report.data.hex(" ", -2)}</pre><dl class="facts">{listed}</dl></div>"""


def _refusals(refusals: tuple[Refused, ...]) -> str:
    if not refusals:
        return ""
    rows = "".join(
        f"<li><b>{escape(each.title)}</b> ({escape(each.survey_id)}, version {each.version}): "
        f"{escape(descriptions.refused(each))}</li>"
        for each in refusals
    )
    return f"""<section class="card" id="refusals"><h2>Refused for you</h2>
<p class="note">Only you see this: whoever asked learns nothing of it.</p><ul>{rows}</ul></section>"""


def _forget(account: Account) -> str:
    sure = '<label><input type="checkbox" name="sure" value="yes" required> I want that</label> '
    button = _button("forget", "Forget everything", fields=sure, kind="danger")
    return f"""<section class="card" id="forgetting"><h2>Forget</h2>
<p>Erases every value, every answer and all that waits on this device, ends every survey and takes back every
yes. It cannot recall what was sent, and it never renews the budget: {_up(account.loss + account.reserved)} of
{account.budget:g} stay spent, reserved rounds included. The bytes above are shown no more.</p>
{button}</section>"""


def _up(loss: float) -> str:
    return f"{math.ceil(loss * 1000 - 1e-6) / 1000:.3f}"


def _down(loss: float) -> str:
    return f"{math.floor(loss * 1000 + 1e-6) / 1000:.3f}"
