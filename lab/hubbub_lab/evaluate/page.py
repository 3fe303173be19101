"""The report of an evaluation: one HTML file that loads nothing, for light and dark, wide and narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import count, groupby
from typing import Final

from hubbub_lab.evaluate.charts import DotAxis, DotRow, Mark, dot_plot, legend
from hubbub_lab.evaluate.faults import WORDS
from hubbub_lab.evaluate.figures import LEVEL, QUANTITIES, Quantity, QuantityFigures
from hubbub_lab.evaluate.results import EvaluationResults, beyond, shown
from hubbub_lab.evaluate.run import MeasuredCase

_MOST_ROWS: Final = 48
"""Rows of a plot; where there are more, the tables alone have them."""

_BIASED: Final = 2.0
"""The bias from which on a plot names the cell that is moved farthest."""

_NAMES: Final[dict[Quantity, str]] = {
    "value": "Share of a value",
    "category": "Share of a category",
    "mean": "Mean",
}

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""The things that a browser may load for the page: nothing but its own style."""

_READ: Final = (
    "<strong>Measured</strong> is the root mean square of estimate less truth, over all values (or "
    "categories) and all repeats; <strong>Exact</strong> is what it must be, by the variance of this very "
    "population: nothing is simulated for it. Beside their <strong>Ratio</strong> is its standard error, "
    "from how repeats differ; where the ratio is several of them from 1, something biases.",
    "<strong>Consistent</strong> is measured as well, of the consistent view: no share below 0, all of sum "
    "one. It is biased, and has no intervals; hold it beside the figures of others who clip.",
    "The <strong>Floor</strong> is the least error that any mechanism of this epsilon could have where all "
    "values are equally common; <strong>Variance above floor</strong> is how far this mechanism's exact one "
    "is above it there. Elsewhere errors may be a little smaller, at a large epsilon more so.",
    f"<strong>Covered</strong> is the share of {100 * LEVEL:g} % <strong>Intervals</strong> that hold the "
    "truth. <strong>Bias</strong> is the mean error of a cell over the repeats, in its own standard errors, "
    "root mean square over cells: about 1 where nothing biases. <strong>Moved farthest</strong> is the cell "
    "whose mean error is the largest in these, and that error.",
    "The truth is that of all devices that were asked, at the end of the round. Errors of a release "
    "describe the randomisation alone: lost reports and drifted values are no part of them.",
    "<strong>Spent</strong> is what the privacy filter takes off a device's budget for one answer: at most "
    "the certified epsilon, rounded up in the twelfth digit; and that is at most the declared one.",
)


def page_of(results: EvaluationResults) -> str:
    """Return the report as HTML."""
    numbers = count()
    parts = [*_errors(results, numbers), *_faults(results, numbers), _table(results), _costs(results)]
    style = files("hubbub_lab.evaluate").joinpath("report.css").read_text(encoding="utf-8")
    facts = [
        ("Cases", f"{len(results.cases):,}"),
        ("Reports", f"{sum(case.verdicts['attempts'] for case in results.cases):,}"),
        ("Time", f"{results.seconds:.1f} s"),
        ("Peak memory", f"{results.peak_bytes / 1e6:,.0f} MB"),
        ("Randomness", "the operating system" if results.seed is None else f"seed {results.seed}"),
        ("Machine", results.machine),
    ]
    listed = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in facts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>Evaluation</title><style>{style}</style></head><body>"
        f"<header><h1>Evaluation</h1><p class=lead>{escape(results.sentence())}</p><dl>{listed}</dl></header>"
        "<main>"
        f"{''.join(parts)}"
        f"<section><h2>How to read this</h2>{''.join(f'<p>{text}</p>' for text in _READ)}</section>"
        "</main></body></html>\n"
    )


def _errors(results: EvaluationResults, numbers: count[int]) -> list[str]:
    """Return a section of plots for every data set and number of devices."""
    above = legend(
        [
            ("measured", "measured"),
            ("exact", "exact"),
            ("uniform", "exact where all values are equally common"),
            ("floor", "floor, the least of any mechanism there"),
        ]
    )
    found = []
    for (data, devices), group in groupby(
        results.faultless, key=lambda case: (case.key.data, case.key.devices)
    ):
        cases = list(group)
        plots = [_error_plot(cases, quantity, next(numbers)) for quantity in QUANTITIES]
        plots.append(_coverage_plot(cases, next(numbers)))
        title = f"{escape(data)}, {devices:,} devices"
        found.append(f"<section><h2>{title}</h2>{above}<div class=plots>{''.join(plots)}</div></section>")
    return found


def _error_plot(cases: Sequence[MeasuredCase], quantity: Quantity, number: int) -> str:
    rows: list[DotRow] = []
    for case in cases:
        figure = case.figures.get(quantity)
        if figure is not None:
            marks: list[tuple[Mark, float]] = [("exact", figure.exact), ("measured", figure.error)]
            if figure.floor is not None and figure.uniform is not None:
                marks = [("floor", figure.floor), ("uniform", figure.uniform), *marks]
            rows.append(DotRow(_case(case), shown(quantity, figure.error), tuple(marks)))
    title = f"{_NAMES[quantity]}: error" + (", in its units" if quantity == "mean" else ", in points")
    places = [place for row in rows for _, place in row.marks if place > 0.0]
    if not places:
        return ""
    text = (lambda at: f"{at:g}") if quantity == "mean" else (lambda at: f"{100 * at:.3g}")
    return _figure(f"plot{number}", title, rows, DotAxis.log(places, text))


def _coverage_plot(cases: Sequence[MeasuredCase], number: int) -> str:
    rows, shares = [], [0.85]
    for case in cases:
        hits = sum(figure.hits for figure in case.figures.values())
        intervals = sum(figure.intervals for figure in case.figures.values())
        if not intervals:
            continue
        spread = 2.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / intervals)
        span = (LEVEL - spread, min(LEVEL + spread, 1.0))
        note = f"{100 * hits / intervals:.1f} % of {intervals:,}"
        rows.append(DotRow(_case(case), note, (("measured", hits / intervals),), span))
        shares.append(hits / intervals)
    if not rows:
        return ""
    step = next(step for step in (0.05, 0.1, 0.2) if step == 0.2 or 1.0 - min(shares) <= 5.0 * step)
    steps = math.ceil((1.0 - min(shares)) / step - 1e-9)
    low, ticks = 1.0 - step * steps, tuple(1.0 - step * place for place in range(steps, -1, -1))
    axis = DotAxis(low, 1.0, ticks, lambda at: f"{100 * at:.3g} %", is_log=False)
    title = "Intervals that hold the truth; the bar is what chance allows independent ones"
    return _figure(f"plot{number}", title, rows, axis, reference=LEVEL)


def _faults(results: EvaluationResults, numbers: count[int]) -> list[str]:
    """Return a section with a plot for every mix of faults."""
    exact = {
        (case.key.data, case.key.devices, case.key.mechanism, case.key.epsilon): case.figures
        for case in results.faultless
    }
    populations = len({(case.key.data, case.key.devices) for case in results.cases})
    mixes = dict.fromkeys(case.key.faults for case in results.cases if case.key.faults.label != "none")
    plots = []
    for mix in mixes:
        rows = []
        for case in results.cases:
            key = case.key
            if key.faults != mix:
                continue
            sound = exact[key.data, key.devices, key.mechanism, key.epsilon]
            label = _case(case) if populations == 1 else f"{key.data}, {key.devices:,}, {_case(case)}"
            for quantity, figure in case.figures.items():
                if quantity in sound:
                    marks: tuple[tuple[Mark, float], ...] = (
                        ("exact", 1.0),
                        ("measured", figure.error / sound[quantity].exact),
                    )
                    rows.append(DotRow(f"{label}, {quantity}", _bias_note(quantity, figure), marks))
        if rows:
            axis = DotAxis.log(
                [0.8, 1.25, *(place for row in rows for _, place in row.marks if place > 0.0)],
                lambda at: f"{at:g}x",
            )
            words = "; ".join(WORDS[part.partition("=")[0]] for part in mix.label.split("+"))
            title = f"{mix.label}: error over the exact one without faults"
            plots.append(_figure(f"plot{next(numbers)}", title, rows, axis, reference=1.0, more=words))
    if not plots:
        return []
    above = legend([("exact", "exact without faults"), ("measured", "measured with them")])
    text = (
        f"A bias of about 1 is chance; where it is above {_BIASED:g}, the cell that is moved farthest "
        "follows, and how far."
    )
    return [f"<section><h2>Faults</h2><p>{text}</p>{above}<div class=plots>{''.join(plots)}</div></section>"]


def _bias_note(quantity: Quantity, figure: QuantityFigures) -> str:
    """Return the bias, and the cell that is moved farthest where it is beyond chance."""
    note = f"bias {figure.bias:.1f}"
    if figure.bias <= _BIASED:
        return note
    moved = _signed(quantity, figure.shift)
    return f"{note}; {moved}" if quantity == "mean" else f"{note}; {figure.shifted}: {moved}"


def _figure(
    name: str,
    title: str,
    rows: Sequence[DotRow],
    axis: DotAxis,
    *,
    reference: float | None = None,
    more: str = "",
) -> str:
    if len(rows) > _MOST_ROWS:
        said = f"<p>{len(rows)} rows are too many to draw: the table below has them.</p>"
        return f"<figure><figcaption>{escape(title)}</figcaption>{said}</figure>"
    drawn = dot_plot(
        name, title, rows, axis, description="Every number is in the tables below.", reference=reference
    )
    under = f"<p class=small>{escape(more)}</p>" if more else ""
    return f"<figure><figcaption>{escape(title)}</figcaption>{under}{drawn}</figure>"


def _table(results: EvaluationResults) -> str:
    rows = []
    for case, quantity, found in results.lines():
        key = case.key
        rows.append(
            (
                *(key.data, f"{key.devices:,}", case.label, f"{key.epsilon:g}", key.faults.label, quantity),
                *(shown(quantity, found.error), shown(quantity, found.exact), found.ratio_text(3)),
                "-" if found.consistent is None else shown(quantity, found.consistent),
                "-" if found.floor is None else shown(quantity, found.floor),
                beyond(found),
                f"{100 * found.coverage:.1f} %",
                f"{found.hits:,} of {found.intervals:,}",
                f"{found.bias:.2f}",
                f"{found.shifted}: {_signed(quantity, found.shift)}",
            )
        )
    heads = (
        *("Data", "Devices", "Mechanism", "Epsilon", "Faults", "Of"),
        *(
            "Measured",
            "Exact",
            "Ratio",
            "Consistent",
            "Floor",
            "Variance above floor",
            "Covered",
            "Intervals",
            "Bias",
            "Moved farthest",
        ),
    )
    return _tabled(
        "errors",
        "Errors and intervals",
        "pt: percentage points; a mean is in its units.",
        heads,
        rows,
        words=6,
    )


def _costs(results: EvaluationResults) -> str:
    rows = []
    for case in results.cases:
        key, verdicts, spent = case.key, case.verdicts, case.spent
        accepted = verdicts["accepted"] // case.repeats
        rows.append(
            (
                *(key.data, f"{key.devices:,}", case.label, f"{key.epsilon:g}", key.faults.label),
                *(
                    f"{case.inputs:,}",
                    str(case.report_bytes),
                    f"{case.log_bytes:.1f}",
                    f"{case.certified:.6f}",
                ),
                "-" if spent is None else f"{spent.mean:.4f}",
                "-" if spent is None else f"{spent.most:.4f}",
                f"{case.repeats:,}",
                *(f"{verdicts[name]:,}" for name in ("attempts", "accepted", "duplicate", "early")),
                f"{case.cohort:,}" + (" (nothing is released)" if accepted < case.cohort else ""),
                f"{case.seconds:.2f}",
            )
        )
    heads = (
        *(
            "Data",
            "Devices",
            "Mechanism",
            "Epsilon",
            "Faults",
            "Inputs",
            "Bytes of a report",
            "Bytes in the log",
        ),
        *(
            "Certified epsilon",
            "Spent, mean",
            "Spent, most",
            "Repeats",
            "Reports",
            "Accepted",
            "Duplicate",
            "Early",
        ),
        *("Minimum cohort", "Seconds"),
    )
    text = "Bytes of a report are without HTTP; those in the log are per report that arrived."
    return _tabled("costs", "Bytes, budget, counting", text, heads, rows, words=5)


def _tabled(
    name: str, title: str, text: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, words: int
) -> str:
    """Return a section with a table in a region that scrolls; its first columns are words, not numbers."""
    head = "".join(
        f"<th scope=col class={_kind(place, words)}>{escape(each)}</th>" for place, each in enumerate(heads)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td class={_kind(place, words)}>{escape(cell)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return (
        f'<section><h2 id="{name}">{escape(title)}</h2>'
        f'<div class=scroll role=region tabindex=0 aria-labelledby="{name}"><table>'
        f"<caption>{escape(text)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>"
    )


def _kind(place: int, words: int) -> str:
    return "word" if place < words else "number"


def _case(case: MeasuredCase) -> str:
    return f"{case.short}, epsilon {case.key.epsilon:g}"


def _signed(quantity: Quantity, number: float) -> str:
    return ("+" if number >= 0.0 else "-") + shown(quantity, abs(number))
