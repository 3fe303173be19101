"""The owner's descriptions in words: of surveys, mechanisms, answers and losses.

Numbers that bound something are rounded up, so that no sentence promises more than the integers do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from hubbub.channels import Symbol
from hubbub.survey import Attribute, IntegerDomain, NumberDomain, SetDomain, Survey
from hubbub_client.owner_page.account import Asked, Refused
from hubbub_client.surveys.schedule import Refusal, is_static

if TYPE_CHECKING:
    from hubbub.mechanisms import SampledParts

_NAMED: Final = 4
"""Values that a sentence lists before it counts the others."""

_REFUSALS: Final[dict[Refusal, str]] = {
    "unknown_attribute": "it asks for what this device does not hold",
    "domain_mismatch": "it asks for other values than this device registered",
    "over_policy": "one answer would cost more than this app allows",
    "too_large": "it asks more often, or is larger, than this app allows",
    "not_allowed": "this app does not let anybody ask for that",
    "not_opted_in": "you have not said yes to it",
    "opted_out": "you said no to it",
    "cancelled": "it was cancelled for good",
    "expired": "its last round was over",
    "clock_not_trusted": "the device did not know what time it is",
    "wrong_ledger": "it asks browsers alone",
    "over_budget": "it does not fit what is left of the budget",
}

_FATES: Final = {
    "accepted": "accepted",
    "late": "too late to be counted",
    "over_quota": "not counted: the round had enough",
}


def asked(survey: Survey) -> str:
    """Return what a survey asks for, how often, and its epsilon."""
    each = [f"{attribute.id}, {_values(attribute)}" for attribute in survey.attributes]
    what = survey.form.asks_for(each)
    how = "once, the same noisy answer every round" if is_static(survey) else "anew every round"
    return f"{what}, {how}, epsilon {survey.channel.epsilon:.3f}"


def _values(attribute: Attribute) -> str:
    domain = attribute.domain
    if isinstance(domain, NumberDomain | IntegerDomain):
        none = ", or that you have none" if domain.absent else ""
        return f"a number from {domain.low:g} to {domain.high:g}{none}"
    if isinstance(domain, SetDomain):
        return f"which of {len(domain.items.labels)} items"
    return f"one of {attribute.size} labels"


def mechanism(survey: Survey) -> str:
    """Return how a survey's answers are made, and how far apart that leaves any two values."""
    form = survey.form
    return (
        f"{form.description(survey.channel)} No answer is more than {factor(survey.channel.epsilon)} times "
        f"as likely from one {form.noun} as from another. {form.cost}"
    ).rstrip()


def schedule(survey: Survey) -> str:
    """Return when a survey asks, in coordinated universal time."""
    first, last = survey.start_s, survey.round_end_s(survey.rounds - 1)
    rounds = "1 round" if survey.rounds == 1 else f"{survey.rounds} rounds"
    return f"{_turn(survey)}{rounds} of {duration(survey.round_s)}, {moment(first)} to {moment(last)}"


def _turn(survey: Survey) -> str:
    """Return which of a rotating survey's rounds this device answers; nothing where it answers all."""
    if survey.rotation == 1:
        return ""
    unit = {86_400: "days", 3_600: "hours"}.get(survey.round_s, "rounds")
    if survey.rotation < survey.rounds:
        return f"one of every {survey.rotation} {unit}, drawn on this device: "
    most = "" if survey.rotation == survey.rounds else "at most "
    return f"{most}one of these {survey.rounds} {unit}, drawn on this device: "


def duration(seconds: int) -> str:
    """Return a length of time in its largest whole unit."""
    for name, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds % length == 0:
            count = seconds // length
            return f"{count} {name}" + ("" if count == 1 else "s")
    return f"{seconds} seconds"


def moment(epoch_s: float) -> str:
    """Return a moment, in coordinated universal time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(epoch_s))
    except (OverflowError, ValueError, OSError):  # a schedule may end past the calendar
        return f"{epoch_s:g} s after 1970"


def factor(loss: float) -> str:
    """Return e^loss, rounded up."""
    value = math.exp(min(loss, 700.0))
    if value < 100:
        return f"{math.ceil(value * 100 - 1e-9) / 100:.2f}"
    step = 10 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / step) * step:.3g}"


def learned(loss: float, where: str) -> str:
    """Return the sentence on a realised loss, which bounds how much the odds of any two records moved."""
    if loss <= 0:
        return f"{where}, nobody has learned anything."
    return f"{where}, the odds between any two things about you change by a factor of at most {factor(loss)}."


def example(loss: float) -> str:
    """Return the sentence of `learned` for somebody to whom two things were equally likely before."""
    if loss <= 0:
        return ""
    share = 100 / (1 + math.exp(-loss))
    sure = "almost certain" if share > 99.99 else f"{min(math.ceil(share * 100) / 100, 99.99):.4g} % sure"
    return f"Somebody who thought it even can now be at most {sure}: {factor(loss)} to 1."


def symbol(survey: Survey, said: Symbol) -> str:
    """Return what one answer says, and what it makes likelier."""
    channel = survey.channel
    if survey.form.samples_parts and isinstance(said, bytes):
        parts = cast("SampledParts", channel)
        number = parts.part_of(said)
        oracle, part = parts.oracles[number], parts.parts[number]
        names = [survey.attributes[member].id for member in part.members]
        high, low = oracle.odds
        about = f"{', '.join(names)} alone" if part.classes == 1 else f"how {' and '.join(names)} go together"
        return (
            f"about {about}, part {number + 1} of {len(parts.parts)} that a coin picked: a set of "
            f"{oracle.size} of {oracle.inputs} cells, {factor(math.log(high / low))} times as likely from "
            "one in it as from another"
        )
    if isinstance(said, bytes):
        bits = np.unpackbits(np.frombuffer(said, np.uint8), count=channel.bins, bitorder="little")
        members = [str(cell) for cell in np.flatnonzero(bits)]
        what = f"the set of cells {_listed(members, 12)}" if members else "the empty set of cells"
    else:
        what = f"number {said}"
    what += f" of 0 to {channel.bins - 1}"
    weights = channel.column(said)
    high, low = int(weights.max()), int(weights.min())
    if high == low:
        return f"{what}: every value sends it equally often"
    labels = survey.input_labels
    best = _listed([labels[x] for x in np.flatnonzero(weights == high)], _NAMED)
    worst = _listed([labels[x] for x in np.flatnonzero(weights == low)], _NAMED)
    return f"{what}: likeliest from {best}, {factor(math.log(high / low))} times as likely as from {worst}"


def progress(asked: Asked) -> str:
    """Return how much of a survey was sent, and what that alone can have given away."""
    sent = f"{len(asked.sent)} sent in {asked.survey.rounds} rounds"
    if not asked.sent:
        return f"{sent}, as far as is remembered."
    return f"{sent}. {learned(asked.loss, 'From these alone')}"


def refused(refusal: Refused) -> str:
    """Return why a survey was refused, and what was left of the budget then."""
    why = _REFUSALS.get(refusal.reason, refusal.reason.replace("_", " "))
    free = (
        "what was free is not told, because an answer had not been sent"
        if refusal.headroom is None
        else f"{refusal.headroom:.3f} of the budget was free"
    )
    return f"{why}. An answer would have cost up to {refusal.epsilon:.3f}; {free} ({moment(refusal.at_s)})."


def fate(outcome: str) -> str:
    """Return what became of a report.

    A collector remembers no reports, so it judges the copy that it got. Where the answer to an earlier copy
    was lost, that copy may be counted, whatever is said of the last.
    """
    said = _FATES.get(outcome, f"refused by the collector: {outcome.replace('_', ' ')}")
    return said if outcome == "accepted" else f"{said}, unless a copy that was sent before was counted"


def _listed(names: Iterable[str], most: int) -> str:
    found = list(names)
    shown = found if len(found) <= most + 1 else found[:most]
    text = ", ".join(shown)
    return text if len(shown) == len(found) else f"{text} and {len(found) - most} others"
