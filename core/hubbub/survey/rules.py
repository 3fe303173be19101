"""The limits of a survey's terms, and refusals that name file, key, rule and value."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from hubbub.errors import SurveyError
from hubbub.numeric.exact import MAX_EPSILON, MIN_EPSILON
from hubbub.survey.domain import IDENTIFIER, IDENTIFIER_RULE, Attribute

MAX_VERSION: Final = 2**31 - 1
MAX_TITLE_CHARACTERS: Final = 200
MAX_NAME_CHARACTERS: Final = 200
DAY_S: Final = 86_400
# A start that 32 bits of seconds hold: the log keeps minutes in as many, with room to spare.
MAX_START_S: Final = 2**32 - 1
MAX_ROUND_S: Final = 366 * DAY_S
# Every round's reservation is held by the device from enrolment on; three a day for a century.
MAX_ROUNDS: Final = 100_000
# A cycle of which nobody would see more than one round.
MAX_ROTATION: Final = 100_000
MAX_LATENESS_S: Final = 90 * DAY_S
MAX_SKEW_S: Final = DAY_S
MAX_DEVICES: Final = 10**11
MAX_QUOTA: Final = 2**53 - 1
# Canonical bytes travel to every device and into every partition of the log.
MAX_CANONICAL_BYTES: Final = 2**24
LEDGERS: Final = ("durable", "site-data")
"""The places where a device keeps its account: a file that stays, or a browser's site data, which may not."""
DEFAULT_LEDGERS: Final = ("durable",)
MISSING: Final = "missing"

# The one category beside missing where a survey declares none: the share of devices that have a value.
ANSWERED: Final = "answered"

# Of sets: devices tell whether they have more items than count.
MORE: Final = "more"


# The joiners that Persian, Sinhala and families of emoji are spelt with; no other sign that is not seen.
_JOINERS: Final = "\u200c\u200d"


def is_readable(text: str) -> bool:
    """Return whether a text is of signs that are seen, spaces of any width, and joiners."""
    return text.isprintable() or all(
        sign.isprintable() or sign in _JOINERS or unicodedata.category(sign) == "Zs" for sign in text
    )


@dataclass(frozen=True, slots=True)
class Rules:
    """The checks of single values of one survey, read from `file`."""

    file: str

    def refuse(self, key: str, rule: str, value: object) -> NoReturn:
        """Raise the SurveyError of a broken rule."""
        raise SurveyError(self.file, key, rule, value)

    def integer(self, key: str, value: object, low: int, high: int) -> int:
        """Return `value` if it is an integer in [low, high]."""
        if type(value) is not int or not low <= value <= high:
            self.refuse(key, f"must be an integer from {low} to {high}", value)
        return value

    def real(self, key: str, value: object, low: float = -math.inf, high: float = math.inf) -> float:
        """Return `value` as a float if it is a finite number in [low, high]."""
        bounds = "" if low == -math.inf else f" from {low:g} to {high:g}"
        rule = f"must be a finite number{bounds}"
        if type(value) not in (int, float):
            self.refuse(key, rule, value)
        try:
            number = float(value)  # type: ignore[arg-type]  # its exact type was tested above
        except OverflowError:
            self.refuse(key, rule, value)
        if not math.isfinite(number) or not low <= number <= high:
            self.refuse(key, rule, value)
        return number + 0.0

    def text(self, key: str, value: object, max_characters: int) -> str:
        """Return `value` if it is printable text of 1 to `max_characters`."""
        if not isinstance(value, str) or not 1 <= len(value) <= max_characters or not is_readable(value):
            self.refuse(key, f"must be printable text of 1 to {max_characters} characters", value)
        return value

    def typed(self, key: str, value: object, max_characters: int) -> str:
        """Return the text that somebody wrote in a survey file, in Unicode's form C.

        What begins or ends with a space or a joiner looks like what does not, and no other file has it.
        """
        text = self.text(key, value, max_characters)
        if text != text.strip() or text[0] in _JOINERS or text[-1] in _JOINERS:
            self.refuse(key, "must begin and end with a sign that is seen, and no space", value)
        return self.text(key, unicodedata.normalize("NFC", text), max_characters)

    def identifier(self, key: str, value: object) -> str:
        """Return `value` if it can be an id."""
        if not isinstance(value, str) or not IDENTIFIER.fullmatch(value):
            self.refuse(key, IDENTIFIER_RULE, value)
        return value

    def choice(self, key: str, value: object, choices: Sequence[str]) -> str:
        """Return `value` if it is one of `choices`."""
        if not isinstance(value, str) or value not in choices:
            self.refuse(key, f"must be one of {', '.join(choices)}", value)
        return value

    # The terms that a survey file and canonical bytes have in common.

    def epsilon(self, value: object, key: str = "epsilon") -> float:
        """Return the declared epsilon."""
        return self.real(key, value, MIN_EPSILON, MAX_EPSILON)

    def terms(
        self,
        *,
        survey_id: object,
        version: object,
        title: object,
        start_s: object,
        round_s: object,
        rounds: object,
        lateness_s: object,
        skew_s: object,
        minimum_cohort: object,
        planned_devices: object,
        quota: object,
        rotation: object,
        ledgers: object,
    ) -> None:
        """Refuse terms beyond their limits; errors name them by their keys in a survey file."""
        self.identifier("id", survey_id)
        self.integer("version", version, 1, MAX_VERSION)
        self.text("title", title, MAX_TITLE_CHARACTERS)
        self.integer("schedule.start", start_s, 0, MAX_START_S)
        self.integer("schedule.round", round_s, 1, MAX_ROUND_S)
        self.integer("schedule.rounds", rounds, 1, MAX_ROUNDS)
        self.integer("schedule.lateness", lateness_s, 0, MAX_LATENESS_S)
        self.integer("schedule.skew", skew_s, 0, MAX_SKEW_S)
        self.integer("minimum_cohort", minimum_cohort, 1, MAX_DEVICES)
        self.integer("planned_devices", planned_devices, 1, MAX_DEVICES)
        if quota is not None:
            self.integer("quota", quota, 1, MAX_QUOTA)
        if rotation != 1:
            self.integer("schedule.rotation", rotation, 2, MAX_ROTATION)
        if ledgers != self.ledgers(ledgers):
            self.refuse("ledgers", f"must be in the order {', '.join(LEDGERS)}", ledgers)

    def ledgers(self, value: object) -> tuple[str, ...]:
        """Return the ledgers that a value names, in their order."""
        named = value if isinstance(value, list | tuple) else ()
        if not named or len(set(map(str, named))) < len(named) or not set(map(str, named)) <= set(LEDGERS):
            self.refuse("ledgers", f"must name one or more of {', '.join(LEDGERS)}, none twice", value)
        return tuple(each for each in LEDGERS if each in named)


def check_names(rules: Rules, key: str, names: Sequence[str]) -> None:
    """Refuse names of categories that are not text, not different, or not "missing" last and only there."""
    for i, name in enumerate(names):
        rules.text(f"{key}[{i}].name", name, MAX_NAME_CHARACTERS)
        if (name == MISSING) != (i == len(names) - 1):
            rules.refuse(f"{key}[{i}].name", f'must be "{MISSING}" for the last category only', name)
    if len(set(names)) != len(names):
        rules.refuse(key, "must have names that differ", list(names))


def check_attributes(rules: Rules, attributes: Sequence[Attribute], least: int, most: int) -> None:
    """Refuse attributes of one survey that are too few, too many, or of equal names."""
    if not least <= len(attributes) <= most:
        rules.refuse("attribute", f"must be {least} to {most} [[attribute]] tables", len(attributes))
    for i, attribute in enumerate(attributes):
        if any(attribute.id == other.id for other in attributes[:i]):
            rules.refuse(f"attribute[{i}].id", "must be its own in the survey", attribute.id)
