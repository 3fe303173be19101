"""The trade-offs of a survey's design as one picture: error over epsilon, and over boost_epsilon."""

from __future__ import annotations

import html
import io
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hubbub_authoring.design import Candidate, boost_curve, compare, frontier
from hubbub_deploy.commands.survey.design_joint import INTERVAL_95
from hubbub_deploy.files import writing
from hubbub_lab.evaluation import as_typed, log_axes

if TYPE_CHECKING:
    from hubbub_deploy.commands.survey.design import SurveyDesign

EPSILONS: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
BOOSTS: Final = 25
TOLD_S: Final = 5.0
"""Seconds between two lines that say how far a picture is: one of many values takes minutes."""
ONE_PLACE_PX: Final = 6.0
"""Points nearer than this, in pixels at 100 dpi, are one point to the eye and have one label."""
LINE_PX: Final = 12.0
"""The height of a label at 100 dpi."""


@as_typed()
def draw(design: SurveyDesign, path: Path, *, say: Callable[[str], None]) -> None:
    """Write the picture; .html wraps it with the sentence in one page that needs nothing else.

    Args:
        design: What to draw.
        path: Where; the ending names the format.
        say: Is told now and then how far the picture is.

    Raises:
        DeployError: If the file cannot be written.
    """
    mpl.use("Agg")
    figure = _figure(design, say)
    with writing(path):
        if path.suffix == ".html":
            path.write_text(_page(design, figure), encoding="utf-8")
        else:
            figure.savefig(path, dpi=150)


def _figure(design: SurveyDesign, say: Callable[[str], None]) -> Figure:
    boosted = design.workload.kind == "labels" and 2 < len(design.workload.sizes) < design.workload.inputs
    figure = Figure(figsize=(19 if boosted else 8, 6), layout="constrained")
    survey = design.survey
    figure.suptitle(f"{survey.title}: {design.workload.devices:,} devices")
    _over_epsilon(figure.add_subplot(1, 1 + 2 * boosted, 1), design, say)
    if boosted:
        curve = _boosts(design)
        _over_boost(figure.add_subplot(1, 3, 2), design, curve)
        _frontier(figure.add_subplot(1, 3, 3), design, curve)
    return figure


def _over_epsilon(axes: Axes, design: SurveyDesign, say: Callable[[str], None]) -> None:
    lines: dict[str, list[tuple[float, float]]] = {}
    epsilons, told_s = sorted({*EPSILONS, design.survey.epsilon}), time.monotonic()
    for done, epsilon in enumerate(epsilons):
        if time.monotonic() - told_s >= TOLD_S:
            say(f"picture: {done} of {len(epsilons)} epsilons compared")
            told_s = time.monotonic()
        best: dict[str, float] = {}
        for candidate in compare(replace(design.workload, epsilon=epsilon)):
            if math.isfinite(candidate.cost):
                height = _height(candidate, design)
                best[candidate.mechanism] = min(height, best.get(candidate.mechanism, math.inf))
        for name, height in best.items():
            lines.setdefault(name, []).append((epsilon, height))
    for number, (name, points) in enumerate(sorted(lines.items(), key=lambda line: line[1][0][1])):
        dashes = "-" if number < len(mpl.rcParams["axes.prop_cycle"]) else "--"
        axes.plot(*zip(*points, strict=True), dashes, marker=".", label=name)
    if math.isfinite(design.own.cost):
        axes.plot(
            [design.survey.epsilon], [_height(design.own, design)], "k*", markersize=12, label="this survey"
        )
    axes.set_xlabel("epsilon")
    within = design.workload.objective.within
    axes.set_ylabel(
        f"±{_unit(design)}: {design.objective}"
        if within is None
        else f"share of reports farther than {within:g} from their value"
    )
    log_axes(axes, "y")
    axes.set_title("error over epsilon, each mechanism at its best", fontsize=10)
    axes.legend(frameon=False)


def _height(candidate: Candidate, design: SurveyDesign) -> float:
    """Return half a 95 % interval, in points of shares, or the share of misses where hits are asked for."""
    missed = candidate.accuracy is not None and candidate.accuracy.errors.miss is not None
    return candidate.cost if missed else _scale(design) * INTERVAL_95 * math.sqrt(candidate.cost)


def _scale(design: SurveyDesign) -> float:
    return 1.0 if design.workload.objective.quantity == "mean" else 100.0


def _unit(design: SurveyDesign) -> str:
    return " in the number's unit" if design.workload.objective.quantity == "mean" else " percentage points"


def _boosts(design: SurveyDesign) -> list[tuple[float, Candidate]]:
    """Return PB-GRR at boosts from nothing to all of epsilon."""
    boosts = np.linspace(0.0, design.survey.epsilon, BOOSTS).tolist()
    return list(zip(boosts, boost_curve(design.workload, boosts), strict=True))


def _frontier(axes: Axes, design: SurveyDesign, curve: list[tuple[float, Candidate]]) -> None:
    """Draw category against value error: every mechanism, PB-GRR over its boosts, and the frontier."""
    found = [
        (_family(candidate), *_pair(candidate))
        for candidate in design.others
        if math.isfinite(sum(_pair(candidate)))
    ]
    boosted = [pair for _, candidate in curve if math.isfinite(sum(pair := _pair(candidate)))]
    axes.plot(*zip(*boosted, strict=True), color="grey", label="pbgrr over boost_epsilon")
    axes.plot([row[1] for row in found], [row[2] for row in found], "o", color="tab:blue", markersize=5)
    own = _pair(design.own)
    if math.isfinite(sum(own)):
        axes.plot(*own, "k*", markersize=12, label="this survey")
    reach = np.array([*boosted, *(row[1:] for row in found), *([own] if math.isfinite(sum(own)) else [])])
    _least(axes, design, reach)
    log_axes(axes, "x", "y")
    axes.set_xlabel("a value's share, ± percentage points")
    axes.set_ylabel("a category's share, ± percentage points")
    axes.set_title(f"both errors at epsilon {design.survey.epsilon:g}", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    _labels(axes, found, own)


def _least(axes: Axes, design: SurveyDesign, reach: NDArray[np.float64]) -> None:
    """Draw the frontier: from the least value error, above which it rises without end, to the right."""
    scale, n = (100 * INTERVAL_95) ** 2, design.workload.devices
    alone = design.floors.of("value")
    begin = 0.5 * float(reach[:, 0].min()) if alone is None else math.sqrt(alone.error / n * scale)
    values = np.geomspace(begin, max(float(reach[:, 0].max()), begin), 200) ** 2 / scale * n
    if alone is not None:
        values[0] = alone.error  # not a rounding below it
    least = frontier(design.workload, values)
    if least is None:
        return
    shown = np.isfinite(least) & (least > 0.0)
    across, up = np.sqrt(values[shown] / n * scale), np.sqrt(least[shown] / n * scale)
    if alone is not None and shown[0]:
        top = 2.0 * max(float(reach[:, 1].max()), float(up[0]))
        across, up = np.append(across[0], across), np.append(top, up)
    axes.plot(across, up, "r", label="no mechanism left of it or below")
    low = 0.8 * float(min(reach[:, 1].min(), up.min()))
    axes.set_ylim(low, 1.5 * float(max(reach[:, 1].max(), up[-1])))
    axes.set_xlim(0.8 * float(across.min()), 1.5 * float(reach[:, 0].max()))


def _labels(axes: Axes, found: list[tuple[str, float, float]], own: tuple[float, float]) -> None:
    """Write the mechanisms' names: one label for points in one place, none over another or the star."""
    axes.figure.canvas.draw()  # places are known once it is laid out
    placed: list[tuple[float, float, list[str]]] = []
    for name, value, category in found:
        x, y = axes.transData.transform((value, category)).tolist()
        near = [
            names
            for left, bottom, names in placed
            if abs(x - left) <= ONE_PLACE_PX and abs(y - bottom) <= ONE_PLACE_PX
        ]
        if not near:
            placed.append((x, y, [name]))
        elif name not in near[0]:
            near[0].append(name)
    star = axes.transData.transform(own).tolist()
    taken: list[tuple[float, float, float]] = []
    for x, y, names in sorted(placed, key=lambda place: -place[1]):
        text = ", ".join(names)
        width, at = 5.5 * len(text), y + 4.0
        # From the highest point on, every label is below those that it would cover.
        for left, bottom, wide in taken:
            if x < left + wide and left < x + width and at > bottom - LINE_PX:
                at = bottom - LINE_PX
        if x - LINE_PX < star[0] < x + width + LINE_PX and abs(at - star[1]) < LINE_PX:
            at = star[1] - 1.5 * LINE_PX
        taken.append((x, at, width))
        place = axes.transData.inverted().transform((x, y)).tolist()
        offset = (7.0, 0.72 * (at - y))
        axes.annotate(text, (place[0], place[1]), xytext=offset, textcoords="offset points", fontsize=8)


def _pair(candidate: Candidate) -> tuple[float, float]:
    """Return half a 95 % interval of a value's and of a category's share, in percentage points."""
    if candidate.accuracy is None:
        return math.inf, math.inf
    known = candidate.accuracy.errors
    return 100 * INTERVAL_95 * known.value, 100 * INTERVAL_95 * known.category


def _over_boost(axes: Axes, design: SurveyDesign, curve: list[tuple[float, Candidate]]) -> None:
    epsilon = design.survey.epsilon
    for name in ("category", "value"):
        known = [(b, getattr(c.accuracy.errors, name)) for b, c in curve if c.accuracy]
        shown = [(b, 100 * INTERVAL_95 * error) for b, error in known if math.isfinite(error)]
        line = axes.plot(*zip(*shown, strict=True), label=f"a {name}'s share")[0]
        best = min(shown, key=lambda point: point[1])
        axes.plot(*best, "o", color=line.get_color())
    axes.set_xlabel("boost_epsilon of pbgrr")
    axes.set_ylabel("±, percentage points")
    log_axes(axes, "y")
    axes.set_title(f"error over boost_epsilon at epsilon {epsilon:g}; dots: least", fontsize=10)
    axes.legend(frameon=False)


def _family(candidate: Candidate) -> str:
    kinds = [str(value) for value in candidate.parameters.values() if isinstance(value, str)]
    return " ".join([candidate.mechanism, *kinds])


def _page(design: SurveyDesign, figure: Figure) -> str:
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg")
    picture = drawn.getvalue()
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in design.rows()
    )
    title = html.escape(design.survey.title)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        "<style>body{font:16px system-ui;margin:2rem;max-width:70rem}td{padding:.1rem .8rem}"
        "svg{width:100%;height:auto}</style>"
        f"<h1>{title}</h1><p>{html.escape(design.sentence())} {html.escape(design.advice())}</p>"
        f"{picture[picture.index('<svg') :]}<table>{rows}</table></html>\n"
    )
