"""The trade-offs of a survey's design as one picture: error over epsilon, and over boost_epsilon."""

from __future__ import annotations

import html
import io
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hubbub.design import Candidate, boost_curve, compare, frontier
from hubbub_deploy.commands.survey.design_joint import INTERVAL_95
from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    from hubbub_deploy.commands.survey.design import SurveyDesign

EPSILONS: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
BOOSTS: Final = 25
FORMATS: Final = (".png", ".svg", ".pdf", ".html")


def draw(design: SurveyDesign, path: Path) -> None:
    """Write the picture; .html wraps it with the sentence in one page that needs nothing else.

    Args:
        design: What to draw.
        path: Where; the ending names the format.

    Raises:
        DeployError: If the format is unknown or the file cannot be written.
    """
    if path.suffix not in FORMATS:
        raise DeployError(f"--plot must end in one of {', '.join(FORMATS)}, got {path.name!r}")
    mpl.use("Agg")
    figure = _figure(design)
    try:
        if path.suffix == ".html":
            path.write_text(_page(design, figure), encoding="utf-8")
        else:
            figure.savefig(path, dpi=150)
    except OSError as error:
        raise DeployError(f"{path}: cannot be written: {error.strerror}") from None


def _figure(design: SurveyDesign) -> Figure:
    boosted = design.workload.kind == "labels" and 2 < len(design.workload.sizes) < design.workload.inputs
    figure = Figure(figsize=(19 if boosted else 7, 5), layout="constrained")
    survey = design.survey
    figure.suptitle(f"{survey.title}: {design.workload.devices:,} devices")
    _over_epsilon(figure.add_subplot(1, 1 + 2 * boosted, 1), design)
    if boosted:
        curve = _boosts(design)
        _over_boost(figure.add_subplot(1, 3, 2), design, curve)
        _frontier(figure.add_subplot(1, 3, 3), design, curve)
    return figure


def _over_epsilon(axes: Axes, design: SurveyDesign) -> None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for epsilon in sorted({*EPSILONS, design.survey.epsilon}):
        for candidate in compare(replace(design.workload, epsilon=epsilon)):
            if math.isfinite(candidate.cost):
                line = lines.setdefault(_family(candidate), [])
                line.append((epsilon, _height(candidate)))
    for name, points in lines.items():
        axes.plot(*zip(*points, strict=True), marker=".", label=name)
    if math.isfinite(design.own.cost):
        axes.plot([design.survey.epsilon], [_height(design.own)], "k*", markersize=12, label="this survey")
    axes.set_xlabel("epsilon")
    within = design.workload.objective.within
    axes.set_ylabel(
        f"±, root of the objective ({design.workload.objective.quantity})"
        if within is None
        else f"share of reports farther than {within:g} from their value"
    )
    axes.set_yscale("log")
    axes.set_title("error over epsilon", fontsize=10)
    axes.legend(frameon=False)


def _height(candidate: Candidate) -> float:
    """Return half a 95 % interval, or the share of misses where hits are asked for."""
    missed = candidate.accuracy is not None and candidate.accuracy.errors.miss is not None
    return candidate.cost if missed else INTERVAL_95 * math.sqrt(candidate.cost)


def _boosts(design: SurveyDesign) -> list[tuple[float, Candidate]]:
    """Return PB-GRR at boosts from nothing to all of epsilon."""
    boosts = np.linspace(0.0, design.survey.epsilon, BOOSTS).tolist()
    return list(zip(boosts, boost_curve(design.workload, boosts), strict=True))


def _frontier(axes: Axes, design: SurveyDesign, curve: list[tuple[float, Candidate]]) -> None:
    """Draw category against value error: every mechanism, PB-GRR over its boosts, and the frontier."""
    found = [
        (candidate.mechanism, *_pair(candidate))
        for candidate in (design.own, *design.others)
        if math.isfinite(sum(_pair(candidate)))
    ]
    boosted = [pair for _, candidate in curve if math.isfinite(sum(pair := _pair(candidate)))]
    axes.plot(*zip(*boosted, strict=True), color="grey", label="pbgrr over boost_epsilon")
    for name, value, category in found[1:]:
        axes.plot([value], [category], ".", markersize=8)
        axes.annotate(name, (value, category), xytext=(4, 3), textcoords="offset points", fontsize=7)
    axes.plot([found[0][1]], [found[0][2]], "k*", markersize=12, label="this survey")
    reach = np.array([pair[0] for pair in boosted] + [row[1] for row in found])
    scale, n = (100 * INTERVAL_95) ** 2, design.workload.devices
    values = np.geomspace(float(reach.min()) * 0.5, float(reach.max()), 200) ** 2 / scale * n
    least = frontier(design.workload, values)
    if least is not None:
        shown = least > 0.0
        axes.plot(
            np.sqrt(values[shown] / n * scale),
            np.sqrt(least[shown] / n * scale),
            "r",
            label="no mechanism below",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("a value's share, ± percentage points")
    axes.set_ylabel("a category's share, ± percentage points")
    axes.set_title(f"both errors at epsilon {design.survey.epsilon:g}", fontsize=10)
    axes.legend(frameon=False, fontsize=8)


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
    axes.set_yscale("log")
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
