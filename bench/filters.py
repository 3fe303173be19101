"""A step of the privacy filter beside the nearest that others offer.

    make bench ARGS=filter

A step of ours is a reservation and the record of its answer, by PB-GRR at epsilon 0.01, on one coordinate
with a history. What the others do instead, and what differs:

- OpenDP's privacy filter over its fully adaptive composition, of pure epsilons: it adds them up, whatever was
  answered, and draws the answer itself, by GRR; so our step is shown with the draw of the answer too.
- dp_accounting's PLDAccountant: composes one more randomised response and is asked for epsilon at delta
  10^-9. It decides nothing and reads no answer: an account of mechanisms that are known beforehand.

Each figure is processor time: the mean of the quickest of 20 stretches of steps, ours and the others' taken
in turn. A stretch is 25 steps, or 500 of those that are 25 microseconds each or so: ours are shown both ways,
because the first few after somebody else's work find the processor's caches full of that.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from hubbub.filter import BayesianFilter
from hubbub_authoring import mechanisms

EPSILON, STRETCHES, LONG = 0.01, 20, 500
TARGETS = {1_000: "target 20 us", 100_000: "target 200 us"}
Step = Callable[[], object]


def quickest(
    steps: dict[str, Step], *, length: int = 25, lengths: dict[str, int] | None = None
) -> dict[str, float]:
    """Return processor seconds of each step, the mean of its quickest stretch; stretches take turns."""
    least = dict.fromkeys(steps, float("inf"))
    for _ in range(STRETCHES):
        for name, step in steps.items():
            number = (lengths or {}).get(name, length)
            start = time.process_time()
            for _ in range(number):
                step()
            least[name] = min(least[name], (time.process_time() - start) / number)
    return least


def ours(inputs: int, past: int, *, draws: bool = False) -> Step:
    """Return a step on a coordinate of so many values with so many past answers."""
    channel = mechanisms.pbgrr([10] * (inputs // 10), epsilon=EPSILON, boost_epsilon=EPSILON / 2)
    symbols = channel.perturb(np.full(max(past, 1_000), 17)).tolist()
    account, answered = BayesianFilter(budget=1000.0), 0

    def step() -> None:
        nonlocal answered
        ticket = account.reserve("age", channel)
        symbol = channel.perturb(17) if draws else symbols[answered % len(symbols)]
        account.record(ticket, symbol)
        answered += 1

    for _ in range(past):
        step()
    return step


def opendp_filter(inputs: int, past: int) -> Step:
    """Return a step: one more GRR through OpenDP's filter, which has let so many through."""
    import opendp.prelude as dp  # noqa: PLC0415 - a peer, only here

    dp.enable_features("contrib")
    truth = np.exp(EPSILON) / (np.exp(EPSILON) + inputs - 1)
    measurement = dp.m.make_randomized_response(list(range(inputs)), float(truth))
    odometer = dp.c.make_fully_adaptive_composition(
        measurement.input_domain, measurement.input_metric, dp.max_divergence()
    )
    ask = dp.c.make_privacy_filter(odometer, d_in=1, d_out=1000.0)(17)
    for _ in range(past):
        ask(measurement)
    return lambda: ask(measurement)


def accountant(inputs: int, past: int) -> Step:
    """Return a step: one more randomised response in dp_accounting, and its epsilon."""
    import dp_accounting  # noqa: PLC0415 - a peer, only here
    from dp_accounting.pld import PLDAccountant  # noqa: PLC0415

    uniform = 1 / (
        1 + (np.exp(EPSILON) - 1) / inputs
    )  # drawn uniformly with this probability, else the truth
    event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=float(uniform), num_buckets=inputs)
    account = PLDAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    account.compose(event, past)

    def step() -> float:
        account.compose(event, 1)
        return float(account.get_epsilon(1e-9))

    return step


def filter_step() -> None:
    """Print our step, the others', and what a long history costs."""
    for inputs, target in TARGETS.items():
        past = 1_000
        took = quickest(
            {
                "ours": ours(inputs, past),
                "ours, few": ours(inputs, past),
                "ours, with the draw": ours(inputs, past, draws=True),
                "opendp": opendp_filter(inputs, past),
                "dp_accounting": accountant(inputs, past),
            },
            lengths={"ours": LONG, "ours, with the draw": LONG},
        )
        print(f"  K = {inputs:,}, {past:,} past answers:")
        for name, what in (
            ("ours", "filter: reserve + record, PB-GRR"),
            ("ours, few", "the same, 25 steps after the others' work"),
            ("ours, with the draw", "the same with the draw of the answer"),
            ("opendp", "OpenDP: one query through its privacy filter"),
            ("dp_accounting", "dp_accounting: compose one, ask for epsilon"),
        ):
            own = "ours" if name in ("ours", "dp_accounting") else "ours, with the draw"
            ratio = "" if name.startswith("ours") else f"{took[name] / took[own]:.0f} of ours"
            wanted = target if name == "ours" else ""
            print(f"    {what:48} {took[name] * 1e6:9.1f} us  {ratio:14} {wanted}".rstrip())
    for inputs in TARGETS:
        few, many = 10, 10_000
        took = quickest({"few": ours(inputs, few), "many": ours(inputs, many)})
        ratio = took["many"] / took["few"]
        print(f"  K = {inputs:,}: a step after {many:,} answers against one after {few}: {ratio:.2f}")
    for name, peer in (("OpenDP", opendp_filter), ("dp_accounting", accountant)):
        few, many = 10, 2_000
        took = quickest({"few": peer(2, few), "many": peer(2, many)}, length=5)
        print(f"  {name}: a step after {many:,} against one after {few}: {took['many'] / took['few']:.1f}")
