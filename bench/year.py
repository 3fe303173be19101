"""A year of a programme of surveys on a fleet: the full filter, the simplified one, and adding epsilons.

    python bench/year.py                          600 devices: the tables that are kept in evidence/, and
                                                  docs/figures/year.svg
    python bench/year.py --devices 60 --plot ""   a glance, without a figure

Five facts that stay (age, education, region, household, income) are asked for in every quarter, by groupings
of that quarter, and two means of them; three that change are asked for weekly or every four weeks. A tenth of
the weeks a device is off, owners say no to 5 % of surveys and to 20 % from the middle of life on, and correct
8 % of what stays. Every account sees the same devices, words and noise (`year_lives`). A survey that was
refused is asked for again in the next week of its run, as an agent does that reads its list again.

*reports*: what devices sent, and its share of what those willing and switched on could have sent;
*last quarter*: that share in the last thirteen weeks;
*half-width*: of the 95 % intervals of shares in the last round of each survey on what stays, in points, on
average, if 20,000 devices had been asked: of the year, the first and the last quarter; `-` counts surveys
that nobody answered;
*off by*: how far the true share among those counted is from that among all asked, the mean and the most over
categories, and the bound that the dashboard states from the share absent and the budget;
*held*: intervals, widened by that bound, that hold the true share among all asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from line_plot import Line, Panel, write_plot
from numpy.typing import NDArray
from year_lives import STATIC, WEEKS, Account, AddedEpsilons, Fleet, Life, encoded, fleet

from hubbub.estimation import selection_bound
from hubbub.filter import BayesianFilter
from hubbub_client.agent import channel_inputs
from hubbub_lab.filters import SimplifiedFilter

BUDGET: Final = 10.0
BUDGETS: Final = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0)
PLANNED: Final = 20_000
SVG: Final = Path(__file__).parents[1] / "docs" / "figures" / "year.svg"

ACCOUNTS: Final[dict[str, Callable[[float], Account]]] = {
    "full filter": BayesianFilter,
    "simplified filter": SimplifiedFilter,
    "adding epsilons": AddedEpsilons,
}
COLOURS: Final = {"full filter": "#1b7f5c", "simplified filter": "#3b5bb5", "adding epsilons": "#c05a00"}


@dataclass(frozen=True)
class Release:
    """The last round of one survey, as a dashboard has it, beside the truth.

    Attributes:
        counted: Reports in it.
        half_width: Mean half-width of its categories' 95 % intervals at PLANNED devices, as a share; None
            where nobody answered.
        bias: |share among the counted - share among all asked| of every category.
        bound: The selection bound of every category.
        held: Whether an interval, widened by its bound, holds the share among all asked.
    """

    counted: int
    half_width: float | None
    bias: NDArray[np.float64]
    bound: NDArray[np.float64]
    held: NDArray[np.bool_]


def wished(drawn: Fleet) -> NDArray[np.int64]:
    """Return the reports of each week if no account refused anything, shape (WEEKS,)."""
    found = np.zeros(WEEKS, dtype=np.int64)
    for number, ask in enumerate(drawn.asks):
        answered = np.zeros(drawn.devices, dtype=np.bool_)
        for week in range(ask.start, ask.start + ask.weeks):
            if ask.attribute not in STATIC and (week - ask.start) % ask.every == 0:
                answered[:] = False
            sends = drawn.willing[number] & drawn.on[week] & ~answered
            found[week] += sends.sum()
            if ask.attribute not in STATIC:
                answered |= sends
    return found


def lives(drawn: Fleet, make: Callable[[float], Account], budget: float) -> list[Life]:
    """Return every device's year under one kind of account."""
    return [Life(drawn, device, make(budget)).live() for device in range(drawn.devices)]


def release(drawn: Fleet, number: int, lived: list[Life], budget: float) -> Release:
    """Return what the dashboard says of a survey's last round, and what is true."""
    ask, survey = drawn.asks[number], drawn.surveys[number]
    last = ask.start + ask.weeks - ask.every
    sent = {
        life.device: version
        for life in lived
        for survey_number, week, version in life.sent
        if survey_number == number and week >= last and (ask.every > 1 or week == last)
    }
    static = ask.attribute in STATIC
    now = drawn.corrected[ask.attribute] <= last if static else np.zeros(drawn.devices, dtype=np.bool_)
    known = drawn.values[ask.attribute]
    values = np.where(now, known[1], known[0]) if static else known[last]
    estimator = survey.estimator()
    category_of = estimator.category_of[channel_inputs(survey, [encoded(survey.attribute, values)])]
    cells = int(estimator.category_of.max())  # the last one is "missing", which nobody is
    everybody = np.bincount(category_of, minlength=cells + 1)[:cells] / drawn.devices
    if not sent:
        return Release(0, None, np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.bool_))
    counted = np.array(sorted(sent))
    drawn_symbols = drawn.symbols[number]
    symbols = drawn_symbols[[sent[device] for device in counted.tolist()], counted]
    found = estimator(np.bincount(symbols, minlength=survey.channel.outputs), len(counted))
    intervals = found.intervals()
    low, high = intervals.categories_low[:cells], intervals.categories_high[:cells]
    scale = np.sqrt(drawn.devices / PLANNED)
    widths = 1.96 * found.category_errors[:cells] * scale
    among = np.bincount(category_of[counted], minlength=cells + 1)[:cells] / len(counted)
    absent = 1.0 - len(counted) / drawn.devices
    stated = selection_bound(low, high, absent=absent, epsilon=budget)
    held = (low - stated <= everybody) & (everybody <= high + stated)
    large = selection_bound(among - widths, among + widths, absent=absent, epsilon=budget)
    return Release(len(counted), float(widths.mean()), np.abs(among - everybody), large, held)


@dataclass(frozen=True)
class Outcome:
    """A year of a fleet under one account.

    Attributes:
        lived: The lives.
        weekly: Reports of each week, shape (WEEKS,).
        releases: Of every survey that wants shares, by its number.
    """

    lived: list[Life]
    weekly: NDArray[np.int64]
    releases: dict[int, Release]

    @property
    def reports(self) -> NDArray[np.int64]:
        """Reports of every device, shape (n,)."""
        return np.array([len(life.sent) for life in self.lived])


def outcome(drawn: Fleet, name: str, budget: float) -> Outcome:
    """Return a year under the account of this name."""
    lived = lives(drawn, ACCOUNTS[name], budget)
    weeks = [week for life in lived for _, week, _ in life.sent]
    shares = [number for number, ask in enumerate(drawn.asks) if not ask.mean]
    releases = {number: release(drawn, number, lived, budget) for number in shares}
    return Outcome(lived, np.bincount(weeks, minlength=WEEKS), releases)


COLUMNS: Final = (
    "account",
    "reports",
    "of those wished for",
    "last quarter",
    "half-width, points",
    "first quarter's",
    "last quarter's",
    "off by, mean and most, points",
    "bound",
    "held",
    "corrections refused",
)
HEAD: Final = "| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS)


def by_quarter(drawn: Fleet, found: Outcome, quarter: int | None) -> str:
    """Return the mean half-width of the surveys of a quarter, or of all, and how many had no answer."""
    chosen = [
        one.half_width
        for number, one in found.releases.items()
        if (ask := drawn.asks[number]).attribute in STATIC and quarter in {None, ask.start // 13}
    ]
    known = [each for each in chosen if each is not None]
    text = f"{100 * float(np.mean(known)):.2f}" if known else ""
    return text + ("" if len(known) == len(chosen) else f" ({len(chosen) - len(known)} -)")


def row(drawn: Fleet, name: str, found: Outcome) -> str:
    """Return one account's line of the table."""
    wish = wished(drawn)
    bias = np.concatenate([one.bias for one in found.releases.values()])
    bound = np.concatenate([one.bound for one in found.releases.values()])
    held = np.concatenate([one.held for one in found.releases.values()])
    return (
        f"| {name} | {found.weekly.sum():,} | {100 * found.weekly.sum() / wish.sum():.0f} % "
        f"| {100 * found.weekly[-13:].sum() / wish[-13:].sum():.0f} % "
        f"| {by_quarter(drawn, found, None)} | {by_quarter(drawn, found, 0)} | {by_quarter(drawn, found, 3)} "
        f"| {100 * bias.mean():.2f}, {100 * bias.max():.1f} | {100 * bound.mean():.0f} "
        f"| {held.sum()} of {held.size} | {sum(life.uncorrected for life in found.lived)} |"
    )


def fewer(more: Outcome, less: Outcome) -> str:
    """Return the lives in which the account that reserves less sent fewer reports all the same."""
    gain = more.reports - less.reports
    return f"{(gain < 0).sum()} of {gain.size} (at most {max(0, -gain.min())} reports)"


def plot(path: Path, drawn: Fleet, year: dict[str, Outcome], shares: dict[str, list[float]]) -> None:
    """Draw reports by week and by budget."""
    wish = wished(drawn)
    by_week = [
        Line(
            name,
            COLOURS[name],
            [(week + 1, float(100 * found.weekly[week] / wish[week])) for week in range(WEEKS)],
            dashed=name == "simplified filter",
        )
        for name, found in year.items()
    ]
    by_budget = [
        Line(
            name,
            COLOURS[name],
            list(zip(BUDGETS, shares[name], strict=True)),
            dashed=name == "simplified filter",
        )
        for name in ACCOUNTS
    ]
    title = f"Reports of a year, lifetime budget {BUDGET:g}"
    write_plot(
        path,
        [
            Panel(title, "week", "% of the reports wished for", by_week, 100.0, (1, 13, 26, 39, 52)),
            Panel(
                "The same over the budget",
                "lifetime epsilon",
                "% of a year's reports",
                by_budget,
                100.0,
                BUDGETS,
            ),
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="A year of surveys under three accounts.")
    parser.add_argument("--devices", type=int, default=600, help="(default 600)")
    parser.add_argument(
        "--swept", type=int, default=100, help="devices of the sweep of budgets (default 100)"
    )
    parser.add_argument("--plot", default=str(SVG), help="the figure to write; empty for none")
    arguments = parser.parse_args()
    drawn = fleet(arguments.devices)
    asked, epsilon = (
        len(drawn.asks),
        sum(
            survey.channel.epsilon * (1 if ask.attribute in STATIC else survey.rounds)
            for ask, survey in zip(drawn.asks, drawn.surveys, strict=True)
        ),
    )
    print(
        f"{arguments.devices:,} devices of lifetime budget {BUDGET:g}, {asked} surveys, {epsilon:.2f} nats\n"
    )
    print(HEAD, flush=True)
    year = {}
    for name in ACCOUNTS:
        year[name] = outcome(drawn, name, BUDGET)
        print(row(drawn, name, year[name]), flush=True)
    full, simple, added = year.values()
    print(f"\nLives with fewer reports by the full filter than by the simplified one: {fewer(full, simple)};")
    print(f"by the simplified one than by adding: {fewer(simple, added)}.\n")
    small = fleet(arguments.swept, seed=2)
    wish = wished(small).sum()
    print(f"Reports by lifetime budget, % of those wished for, {arguments.swept} other devices:\n")
    print("| account | " + " | ".join(f"{budget:g}" for budget in BUDGETS) + " |")
    print("|---|" + "---|" * len(BUDGETS))
    shares = {}
    for name, make in ACCOUNTS.items():
        sent = [sum(len(life.sent) for life in lives(small, make, budget)) for budget in BUDGETS]
        shares[name] = [100.0 * each / int(wish) for each in sent]
        print(f"| {name} | " + " | ".join(f"{share:.0f}" for share in shares[name]) + " |", flush=True)
    if arguments.plot:
        plot(Path(arguments.plot), drawn, year, shares)
    return 0


if __name__ == "__main__":
    sys.exit(main())
