"""The schedule of a device's answers: decisions that the agent and the simulator share.

A survey's schedule is a list of slots, one for every answer that costs budget. A survey of static attributes
has one slot in all, because its one report is memoised and sent again under fresh ids. One that asks for an
evolving attribute has one slot per round, each a coordinate of its own: fresh noise, and losses add. Of a
rotating survey a device has only the rounds that its own secret draws, one in a cycle (`rotation`).

Every decision here reads public facts and the device's clock, never a value and never an output.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from hubbub.errors import HubbubError
from hubbub.filter import Joint, Query
from hubbub.survey import Attribute, Survey
from hubbub_client.errors import LedgerError
from hubbub_client.surveys.rotation import coin_toss, cycles_of, drawn_rounds, slot_in_cycle

if TYPE_CHECKING:
    from hubbub.mechanisms import SampledParts
    from hubbub.survey import Bundle

_PIN_VERSION_BITS: Final = 62
_PART_FIELDS: Final = 4
_PART_BITS: Final = _PIN_VERSION_BITS // _PART_FIELDS

MEMOISED: Final = -1
"""The one slot of a survey on a static attribute; rounds are numbered from 0."""

MAX_LISTED: Final = 2**20
"""Inputs of all surveys that are read of one list: 16 MiB of maps, 10,000 surveys of a hundred values."""

LEAST_LISTED: Final = 100
"""The inputs that a small survey counts as: reading takes half a millisecond however few its values are."""

UNREADABLE: Final = 2**12
"""The inputs that an unreadable survey counts as: its size is unknown, and refusing it took time too."""

_LAST_S: Final = 2.0**53
"""Epoch seconds that a clock never reaches; below, a float tells every second from the next."""

Refusal: TypeAlias = Literal[
    "cancelled",
    "unknown_attribute",
    "domain_mismatch",
    "over_policy",
    "too_large",
    "not_allowed",
    "not_opted_in",
    "opted_out",
    "expired",
    "clock_not_trusted",
    "over_budget",
    "wrong_ledger",
]


@dataclass(frozen=True, slots=True)
class Enrolment:
    """The result of asking a device to take part in a survey.

    Attributes:
        survey_id: The survey's id.
        version: Its version.
        digest: Its digest, 16 bytes.
        status: "enrolled" now, "already_enrolled" before (nothing was reserved again), or "refused".
        reason: Why it was refused, else None.

    The reasons: cancelled, a signed list has ended it for good; unknown_attribute, the host registered none
    of that id; domain_mismatch, it registered another domain or kind; over_policy, the survey's epsilon is
    larger than the device accepts; too_large, it asks for more answers than the device keeps or its bytes are
    too many, see `Policy`; not_allowed, it asks for an attribute that may not be asked for;
    not_opted_in, the owner has said yes neither to it nor to every attribute of it; opted_out, the owner said
    no to it or to one of them; expired, its last round has ended; clock_not_trusted, so that its rounds are
    not known; over_budget, some outputs of what is reserved could exceed the lifetime budget; wrong_ledger,
    it is for ledgers in a browser's site data alone.
    """

    survey_id: str
    version: int
    digest: bytes
    status: Literal["enrolled", "already_enrolled", "refused"]
    reason: Refusal | None = None

    @property
    def accepted(self) -> bool:
        """True if the device takes part."""
        return self.status != "refused"


def trusted(now_s: float | None) -> float | None:
    """Return a clock's time if it is finite and within 2^53 seconds of 1970, else None."""
    return float(now_s) if now_s is not None and abs(now_s) < _LAST_S else None


def decode_listed_surveys(canonicals: Iterable[bytes]) -> tuple[Survey, ...]:
    """Return the surveys of a collector's list, without those that this version cannot read.

    A hundred bytes can announce a survey of MAX_INPUTS values, which takes megabytes once it is read, and a
    list has room for many small ones. So it is read up to MAX_LISTED inputs in all, LEAST_LISTED at least for
    each survey, and what comes after is left out. Hashes are drawn without a table of the inputs: of such a
    survey its map alone counts, where it has one.

    Args:
        canonicals: Canonical bytes, which may be a hostile server's.
    """
    found: list[Survey] = []
    left = MAX_LISTED
    for canonical in canonicals:
        try:
            survey = Survey.from_canonical(canonical)
        except HubbubError:
            left -= UNREADABLE
        else:
            left -= max(LEAST_LISTED, listed_inputs(survey))
            if left >= 0:
                found.append(survey)
        if left < 0:
            break
    return tuple(found)


def listed_inputs(survey: Survey) -> int:
    """Return how many inputs a survey counts as in a list: the entries of the maps that reading it builds."""
    channel, form = survey.channel, survey.form
    built = channel.inputs if channel.needs_map else channel.bins if form.samples_parts else 0
    return max(form.map_entries, built)


def first_round(survey: Survey, now_s: float) -> int | None:
    """Return the first round that can still be answered, None if the last has ended."""
    if now_s < survey.start_s:
        return 0
    return survey.round_at(now_s)


def check_eligibility(
    survey: Survey, registered: Mapping[str, Attribute], *, max_epsilon: float, now_s: float
) -> Refusal | None:
    """Return why a survey is refused before the budget is asked, None if it is not.

    Args:
        survey: The survey.
        registered: The attributes that the host registered, by id.
        max_epsilon: Largest epsilon of one answer that this device accepts.
        now_s: Clock time, epoch seconds.
    """
    if "durable" not in survey.ledgers:
        return "wrong_ledger"
    known = [registered.get(attribute.id) for attribute in survey.attributes]
    if None in known:
        return "unknown_attribute"
    if known != list(survey.attributes):
        return "domain_mismatch"
    # The declared epsilon is the promise that was read; the certified one is what the integers do.
    if not max(survey.epsilon, survey.channel.epsilon) <= max_epsilon:  # a policy of nan accepts nothing
        return "over_policy"
    if first_round(survey, now_s) is None:
        return "expired"
    return None


def scheduled_answers(survey: Survey, last_closed: int, seed: bytes | None = None) -> tuple[int, ...]:
    """Return the slots of every answer of the schedule after `last_closed`, () if none is left.

    Rounds that ended before enrolment are left out: they are never answered, so nothing is set aside for
    them.

    Args:
        survey: The survey.
        last_closed: As `last_closed_round` gives it, or higher.
        seed: The secret of the device's enrolment; None unless the survey rotates or is a bundle.
    """
    first = last_closed + 1
    if first >= survey.rounds:
        return ()
    if is_static(survey):
        return (MEMOISED,)
    if seed is None:
        return tuple(range(first, survey.rounds))
    return drawn_rounds(seed, first, survey.rounds, survey.rotation)


def most_answers(survey: Survey, last_closed: int) -> int:
    """Return how many answers `scheduled_answers` may come to, whatever the seed.

    A rotating survey is decided on with this number before a slot is drawn: were the drawn answers counted,
    devices with little left would be accepted for their slots, and the other rounds would lose them.

    Args:
        survey: The survey.
        last_closed: As `last_closed_round` gives it, or higher.
    """
    first = last_closed + 1
    if survey.rotation == 1 or first >= survey.rounds:
        return len(scheduled_answers(survey, last_closed))
    return cycles_of(survey.rounds, survey.rotation) - first // survey.rotation


def is_drawn(survey: Survey, round_number: int, seed: bytes | None) -> bool:
    """Return whether a device answers in this round of the survey, if it takes part in it then.

    Args:
        survey: The survey.
        round_number: The round.
        seed: The secret of the device's enrolment; None unless the survey rotates or is a bundle.
    """
    if seed is None:
        return True
    cycle, slot = divmod(round_number, survey.rotation)
    return slot == slot_in_cycle(seed, cycle, survey.rotation)


def asks_for(survey: Survey, attribute_id: str) -> bool:
    """Return whether an attribute is among those of a survey."""
    return attribute_id in survey.attribute_ids


def draws(survey: Survey) -> bool:
    """Return whether a device draws by a secret of its enrolment: its rounds, or the part that it answers."""
    return survey.rotation > 1 or survey.form.samples_parts


def is_static(survey: Survey) -> bool:
    """Return whether one answer serves the whole survey: every attribute of it is static."""
    return all(attribute.kind == "static" for attribute in survey.attributes)


def last_closed_round(survey: Survey, now_s: float) -> int:
    """Return the highest round that is over, and so never answered by a device that enrols now.

    -1 for none. A transition is never answered in rounds that have no earlier one to look back to.
    """
    first = first_round(survey, now_s)
    return survey.rounds - 1 if first is None else max(first, survey.form.lag) - 1


def scheduled_answer_of(survey: Survey, round_number: int) -> int:
    """Return the slot that an answer in this round belongs to."""
    return MEMOISED if is_static(survey) else round_number


def joined_pin_versions(survey: Survey, pin_versions: Sequence[int]) -> int:
    """Return the pin versions of a survey's attributes as the one number that the ledger keeps.

    One attribute's is itself. Those of a table share the bits of an SQLite integer evenly, the first one's
    lowest. Where there is no mapping, as for a score, the numbers have one coordinate together, so that it is
    enough to count how often any of them was pinned anew.

    Raises:
        LedgerError: A value was pinned anew more often than a table's bits count.
    """
    if survey.mapping is None:
        return sum(pin_versions)
    bits = _PIN_VERSION_BITS // len(pin_versions)
    if max(pin_versions) >> bits:
        raise LedgerError(f"an attribute must be pinned anew fewer than {1 << bits} times in such a survey")
    return sum(pin_version << i * bits for i, pin_version in enumerate(pin_versions))


def split_pin_versions(pin_version: int, attributes: int) -> tuple[int, ...]:
    """Return the pin versions that `joined_pin_versions` joined."""
    bits = _PIN_VERSION_BITS // attributes
    return tuple(pin_version >> i * bits & (1 << bits) - 1 for i in range(attributes))


def scheduled_query(survey: Survey, slot: int, *, pin_version: int) -> Query:
    """Return the query that a scheduled answer asks of the filter.

    The coordinate names the stored value that the channel reads. Likelihoods of several surveys merge only on
    one pinned value of a static attribute, so only there is the coordinate shared, over the attribute's whole
    domain; a survey of several static attributes joins theirs. A rounded number is a draw of its own for
    every survey; so is, for the filter, what a form keeps apart. Where an attribute is evolving, what the
    round reads of all of them together is a value of its own: the losses add, which is sound whatever the
    values have to do with each other. A score reads a box of numbers, which is not joined with finite
    domains: the numbers of one list of attributes are one coordinate together, and the losses add. What is
    missing is no point of that box: it reads as the default of each score, so only scores of the same
    defaults read the same point of it, and share the coordinate. A bundle's answer waits on a coordinate of
    its own, at the most that any of its parts can tell: which one it answers is not known yet. See
    `part_query` for where the answer goes.

    Args:
        survey: The survey.
        slot: One of its slots.
        pin_version: Pin version of its attributes, see `joined_pin_versions`: a value pinned anew is another.
    """
    form, named = survey.form, tuple(each.id for each in survey.attributes)
    law = form.likelihood(survey.channel)
    if slot != MEMOISED:
        return Query(("round", named, survey.digest, slot), law)
    if form.samples_parts:
        return Query(("bundle", survey.digest), law)
    if form.apart or form.mapping is None:
        shared = form.shared_point
        if shared is None:
            return Query((form.apart or "rounded", named, pin_version, survey.digest), law)
        return Query(("numbers", named, pin_version, shared), law)
    coordinates = [memoised_coordinate(*pinned) for pinned in memoised_by(survey, slot, pin_version)]
    return Query(coordinates[0] if len(coordinates) == 1 else Joint(*coordinates), law, form.mapping)


def part_query(survey: Survey, symbol: bytes, pin_versions: int | None) -> Query | None:
    """Return the query that a bundle's answer turned out to be; None if it may share no coordinate.

    That is so where a round has a value of its own, which is not the pinned one, also of a static attribute;
    and where the values of the part have too many combinations.

    Args:
        survey: A bundle.
        symbol: The answer.
        pin_versions: Of the attributes of the part; see `joined_part_versions`. None: not told.
    """
    if not survey.form.samples_parts or pin_versions is None or not is_static(survey):
        return None
    form, channel = cast("Bundle", survey.form), cast("SampledParts", survey.channel)
    number = channel.part_of(symbol)
    members = channel.parts[number].members
    mapping = form.part_mapping(members)
    if mapping is None:
        return None
    versions = split_part_versions(pin_versions)
    keys = [
        memoised_coordinate(form.attributes[member].id, version)
        for member, version in zip(members, versions, strict=False)
    ]
    return Query(keys[0] if len(keys) == 1 else Joint(*keys), channel.oracles[number], mapping)


def part_symbol(survey: Survey, symbol: bytes) -> bytes:
    """Return a bundle's answer as the channel of its part takes it."""
    return cast("SampledParts", survey.channel).set_of(symbol)


def attributes_of(survey: Survey, symbol: bytes) -> list[Attribute]:
    """Return the attributes that a bundle's answer is about."""
    return members_of(survey, cast("SampledParts", survey.channel).part_of(symbol))


def members_of(survey: Survey, part: int) -> list[Attribute]:
    """Return the attributes of a part of a bundle."""
    return [survey.attributes[each] for each in cast("SampledParts", survey.channel).parts[part].members]


def joined_part_versions(pin_versions: Sequence[int]) -> int | None:
    """Return the pin versions of a part's attributes as one number; None where one is beyond its 15 bits."""
    if max(pin_versions) >> _PART_BITS:
        return None
    return sum(pin_version << i * _PART_BITS for i, pin_version in enumerate(pin_versions))


def split_part_versions(pin_versions: int) -> list[int]:
    """Return the pin versions that `joined_part_versions` joined, zeros after them."""
    return [pin_versions >> i * _PART_BITS & (1 << _PART_BITS) - 1 for i in range(_PART_FIELDS)]


def part_of(survey: Survey, seed: bytes, slot: int) -> int:
    """Return the part that a device's coin picks for an answer of a bundle.

    Args:
        survey: A bundle.
        seed: The secret of the device's enrolment.
        slot: Which answer.
    """
    return cast("SampledParts", survey.channel).part_at(coin_toss(seed, slot + 1))


def memoised_coordinate(attribute_id: str, pin_version: int) -> Hashable:
    """Return the coordinate of a pinned value over its attribute's whole domain."""
    return ("pinned", attribute_id, pin_version)


def memoised_by(survey: Survey, slot: int, pin_version: int) -> list[tuple[str, int]]:
    """Return the attributes whose memoised values an answer reads as a whole, with pin versions."""
    if slot != MEMOISED or survey.mapping is None or survey.form.apart:
        return []
    pin_versions = split_pin_versions(pin_version, len(survey.attributes))
    return [(attribute.id, each) for attribute, each in zip(survey.attributes, pin_versions, strict=True)]


def due(
    survey: Survey, last_closed: int, answered: Container[int], now_s: float, seed: bytes | None = None
) -> int | None:
    """Return the round to answer now, None if there is none.

    Only the round whose window is open is answered, and once. A round that went by stays reserved at its
    worst case; should the clock have been ahead and be set back, the round comes again and is answered then,
    from the same reservation. So does a slot that went by, which no other round of its cycle takes over:
    the devices that were off would then weigh on the rounds after.

    Args:
        survey: An enrolled survey.
        last_closed: The highest round that was over at enrolment, -1 for none.
        answered: Rounds answered.
        now_s: Clock time, epoch seconds.
        seed: The secret of the device's enrolment; None unless the survey rotates or is a bundle.
    """
    current = survey.round_at(now_s)
    if current is None or current <= last_closed or current in answered:
        return None
    return current if is_drawn(survey, current, seed) else None
