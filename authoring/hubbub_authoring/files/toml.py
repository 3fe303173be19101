"""A survey file: TOML text read key by key into the parts of a Survey, its mechanism compiled on the way."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from hubbub.channels import MAX_INPUTS, Channel
from hubbub.errors import ABSENT, ParameterError, SurveyError, SurveyNotFoundError
from hubbub.mechanisms import with_dummy_reports
from hubbub.survey import (
    ASKS,
    DEFAULT_LEDGERS,
    KINDS,
    MAX_DEVICES,
    MAX_FILE_BYTES,
    MAX_INTEGER,
    MAX_LABEL_CHARACTERS,
    MAX_LATENESS_S,
    MAX_NAME_CHARACTERS,
    MAX_QUOTA,
    MAX_ROTATION,
    MAX_ROUND_S,
    MAX_ROUNDS,
    MAX_SIZE,
    MAX_SKEW_S,
    MAX_START_S,
    MAX_TITLE_CHARACTERS,
    MAX_TREE_LEVELS,
    MAX_VERSION,
    MISSING,
    Asks,
    Attribute,
    Category,
    Choice,
    DeclaredAttribute,
    DeclaredMechanism,
    DictionaryDomain,
    Domain,
    IntegerDomain,
    Kind,
    LabelDomain,
    NumberDomain,
    Parts,
    Rules,
    SetDomain,
    forms_by_mechanism,
)
from hubbub_authoring.design import least_cohort
from hubbub_authoring.files.bundle import BUNDLE, KEYS
from hubbub_authoring.files.compile import DeclaredTransition, compile_survey
from hubbub_authoring.files.key_value import KEY_VALUE
from hubbub_authoring.files.key_value import KEYS as KEY_VALUE_KEYS
from hubbub_authoring.mechanisms.registry import mechanisms

if TYPE_CHECKING:
    from hubbub_authoring.design import Comparison

COVER_KEY: Final = "participation"


def with_participation(rules: Rules, channel: Channel, value: object) -> Channel:
    """Return the channel that devices use: the compiled one, or its mixture with dummy reports.

    Args:
        rules: How to refuse.
        channel: What the mechanism compiled to, within the declared epsilon.
        value: The key's value, 1 where it is absent.

    Raises:
        SurveyError: If the value is no share, or the mixture cannot be told in integers.
    """
    key = f"mechanism.{COVER_KEY}"
    number = rules.real(key, value, 0.0, 1.0)
    if number == 1.0:
        return channel
    try:
        return with_dummy_reports(channel, participation=Fraction(repr(number)))
    except ParameterError as error:
        rules.refuse(key, f"must compile ({error})", value)


# No key of a survey has more than two parts; the parser takes quadratic time for them: minutes for 400 kB.
_PART: Final = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY: Final = re.compile(rf"(?<![\w.-])(?:{_PART}[ \t]*+\.[ \t]*+){{32}}")
# A quarter of the values that a domain may have; the parser takes some 25 us for each [[category]].
MAX_TABLES: Final = 2**15 + 256
_TABLE: Final = re.compile(r"^[ \t]*\[", re.MULTILINE)
MAX_DEPTH: Final = 100
"""Tables and arrays within each other: more than twice what a key of 32 parts in a table of 32 comes to."""
TOO_DEEP: Final = f"more than {MAX_DEPTH} levels"
# Every value as a label and again in a category, each on a line of its own; the parser takes 2 us for each.
MAX_SIGNS: Final = 4 * MAX_INPUTS + 2**16
# Strings and comments whole, closed or not, so that no text is looked at twice. Nothing below a possessive
# quantifier can be matched in two ways: Python before 3.11.5 goes back into it.
_SIGN: Final = re.compile(
    r'''"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5})?|'{3}(?:[^']++|'(?!''))*+(?:'{3,5})?'''
    r"""|"(?:[^"\\\n]++|\\.)*+"?|'[^'\n]*+'?|\#[^\n]*+|(?P<sign>[=,.\n\[{])""",
    re.DOTALL,
)

_DURATION: Final = re.compile(r"(0|[1-9][0-9]{0,8})(s|m|h|d)", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_NOTHING: Final = object()

_TOP: Final = (
    "id",
    "version",
    "title",
    "epsilon",
    "minimum_cohort",
    "planned_devices",
    "quota",
    "ledgers",
    "schedule",
    "attribute",
    "mechanism",
    "category",
    "transition",
    BUNDLE,
)
_EXAMPLES: Final = {
    "id": 'id = "visits"',
    "version": "version = 1",
    "title": 'title = "Visits to a doctor"',
    "epsilon": "epsilon = 1.0",
    "planned_devices": "planned_devices = 10000",
    "schedule.start": "start = 2026-01-01T00:00:00Z",
    "schedule.round": 'round = "24h"',
    "schedule.rounds": "rounds = 30",
    "schedule.lateness": 'lateness = "6h"',
    "schedule.skew": 'skew = "5m"',
    "attribute": 'attribute = { id = "visits", kind = "evolving", type = "integer", low = 0, high = 9 }',
    "mechanism.name": 'name = "grr"',
}
"""The keys that every survey file has, each with an example."""
_SCHEDULE: Final = ("start", "round", "rounds", "lateness", "skew", "rotation")
_ENDS: Final = {
    "integer": ("low", "high"),
    "number": ("low", "high"),
    "label": ("labels",),
    "set": ("labels",),
    "dictionary": ("texts", "digest"),
}
_AUTO_KEYS: Final = ("objective", "category_weight", "of", "within", "points", "max_gain")


def read(path: str | Path) -> str:
    """Return the text of a survey file.

    Raises:
        SurveyError: If it cannot be read, is too long, or is not UTF-8.
    """
    file = str(path)
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise SurveyNotFoundError(file) from None
    except (OSError, ValueError) as error:  # a ValueError where the path itself has a zero byte
        raise SurveyError(
            file, "", "must be a readable file", getattr(error, "strerror", None) or str(error)
        ) from None
    if len(data) > MAX_FILE_BYTES:
        raise SurveyError(file, "", f"must have at most {MAX_FILE_BYTES} bytes", "more")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SurveyError(
            file, "", "must be UTF-8 text", f"byte {data[error.start]:#04x} at offset {error.start}"
        ) from None


@dataclass(frozen=True, slots=True)
class PlannedTerms:
    """The terms that a plan gives a survey.

    Attributes:
        epsilon: Of an answer, nats.
        rotation: Rounds of a cycle; 1 for an answer in every round.
        devices: How many take part.
    """

    epsilon: float
    rotation: int
    devices: int


class Declared(Parts):
    """The parts of a survey that a file declares, and what "auto" chose in it."""

    choice: Choice | None


def decode(text: str, file: str) -> dict[str, object]:
    """Return the keys and values of TOML text that somebody else wrote, of a survey or of settings.

    Raises:
        SurveyError: If it is no TOML, or would take its parser too deep or too long.
    """
    if _DEEP_KEY.search(text):
        raise SurveyError(file, "", "must be TOML of modest depth", "a dotted key of more than 32 parts")
    if len(_TABLE.findall(text)) > MAX_TABLES:
        raise SurveyError(file, "", f"must have at most {MAX_TABLES} tables", "more")
    signs = (match for match in _SIGN.finditer(text) if match.lastgroup)
    if sum(1 for _ in islice(signs, MAX_SIGNS + 1)) > MAX_SIGNS:
        raise SurveyError(file, "", f"must have at most {MAX_SIGNS} lines, keys and values together", "more")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise SurveyError(file, "", "must be TOML of modest depth", TOO_DEEP) from None
    except ValueError as error:  # TOMLDecodeError is one; a number of too many digits raises another
        raise SurveyError(file, "", "must be TOML", str(error)) from None
    # A process whose own limit of recursion is higher parses what another one does not: the rule is here.
    level: list[object] = [document]
    for _ in range(MAX_DEPTH):
        level = [each for outer in level for each in _inside(outer)]
    if level:
        raise SurveyError(file, "", "must be TOML of modest depth", TOO_DEEP)
    return document


def _inside(value: object) -> Collection[object]:
    """Return what a table or an array holds; nothing of any other value."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def parse(
    text: str, file: str, *, compare: Comparison | None = None, planned: PlannedTerms | None = None
) -> Declared:
    """Return the parts of the survey that TOML text declares, its channel compiled.

    Args:
        text: TOML.
        file: What errors call it.
        compare: How "auto" compares mechanisms; None for the usual way.
        planned: Terms in place of the file's; None: as it says.

    Raises:
        SurveyError: If anything in it breaks a rule.
    """
    document = decode(text, file)
    if planned is not None:
        schedule_keys = document.get("schedule")
        if isinstance(schedule_keys, dict):
            schedule_keys.pop("rotation", None)
            schedule_keys |= {"rotation": planned.rotation} if planned.rotation > 1 else {}
        document |= {"epsilon": planned.epsilon, "planned_devices": planned.devices}
    rules = Rules(file)
    top = TomlTable(rules, "", document, _TOP)
    if "schedule" in top:
        top.table("schedule", _SCHEDULE)  # a misspelt key is told before the one that it leaves missing
    missing = [key for key in _EXAMPLES if not _has(document, key)]
    if missing:
        examples = "; ".join(_EXAMPLES[key] for key in missing)
        rules.refuse(", ".join(missing), f"must be given, as in {examples}", ABSENT)
    mechanism_table = top.table("mechanism", None)
    name = rules.choice("mechanism.name", mechanism_table.get("name"), tuple(known := mechanism_keys()))
    mechanism_table.refuse_unknown(("name", COVER_KEY, *known[name]))
    mechanism = DeclaredMechanism(
        name, {key: mechanism_table.get(key) for key in mechanism_table if key not in ("name", COVER_KEY)}
    )

    if (BUNDLE in top) != (name == BUNDLE):
        rules.refuse(BUNDLE, 'must be given with [mechanism] name = "bundle", and only then', name)
    if name == BUNDLE:
        mechanism = DeclaredMechanism(name, top.table(BUNDLE, KEYS).content)

    schedule = top.table("schedule", _SCHEDULE)
    forms = forms_by_mechanism()
    asked = _asked(rules, top, forms[name].terms if name in forms else ())
    epsilon = rules.epsilon(top.get("epsilon"))
    quota, cohort = top.get("quota", None), top.get("minimum_cohort", None)
    rotation = schedule.get("rotation", None)
    # Cheap checks come before the costly compiling.
    terms = {
        "id": rules.identifier("id", top.get("id")),
        "version": rules.integer("version", top.get("version"), 1, MAX_VERSION),
        "title": rules.typed("title", top.get("title"), MAX_TITLE_CHARACTERS),
        "start_s": _start(rules, schedule.get("start")),
        "round_s": _duration(rules, "schedule.round", schedule.get("round"), 1, MAX_ROUND_S),
        "rounds": rules.integer("schedule.rounds", schedule.get("rounds"), 1, MAX_ROUNDS),
        "rotation": 1 if rotation is None else rules.integer("schedule.rotation", rotation, 2, MAX_ROTATION),
        "lateness_s": _duration(rules, "schedule.lateness", schedule.get("lateness"), 0, MAX_LATENESS_S),
        "skew_s": _duration(rules, "schedule.skew", schedule.get("skew"), 0, MAX_SKEW_S),
        "minimum_cohort": None if cohort is None else rules.integer("minimum_cohort", cohort, 1, MAX_DEVICES),
        "planned_devices": rules.integer("planned_devices", top.get("planned_devices"), 1, MAX_DEVICES),
        "quota": None if quota is None else rules.integer("quota", quota, 1, MAX_QUOTA),
        "ledgers": rules.ledgers(top.get("ledgers", list(DEFAULT_LEDGERS))),
    }
    form, channel, choice = compile_survey(
        rules,
        asked,
        mechanism,
        epsilon=epsilon,
        devices=max(1, cast(int, terms["planned_devices"]) // cast(int, terms["rotation"])),
        participation=mechanism_table.get(COVER_KEY, 1),
        compare=compare,
        transition=_transition(rules, top),
    )
    channel = with_participation(rules, channel, mechanism_table.get(COVER_KEY, 1))
    if cohort is None:
        terms["minimum_cohort"] = least_cohort(form.estimator(channel))
    return cast(
        Declared,
        {**terms, "form": form, "epsilon": epsilon, "channel": channel, "choice": choice},
    )


def _has(document: dict[str, object], key: str) -> bool:
    """Return whether a file has a key, or something else where its table should be."""
    table, _, name = key.rpartition(".")
    inner = document.get(table, {}) if table else document
    return not isinstance(inner, dict) or name in inner


def mechanism_keys() -> dict[str, tuple[str, ...]]:
    """Return the keys of every name that [mechanism] may have, beside those that all of them may have."""
    own = {name: tuple(key.name for key in entry.keys) for name, entry in mechanisms().items()}
    discrete = [name for name, entry in mechanisms().items() if "labels" in entry.takes]
    forms = {name: entry.keys for name, entry in forms_by_mechanism().items()}
    own_forms = {BUNDLE: (), KEY_VALUE: KEY_VALUE_KEYS}
    return {"auto": _AUTO_KEYS} | own_forms | {name: own[name] for name in discrete} | forms | own


@dataclass(frozen=True, slots=True)
class TomlTable:
    """One table of the file, whose keys are known; `prefix` is its dotted place, ending in a dot."""

    rules: Rules
    prefix: str
    content: dict[str, object]
    known: tuple[str, ...] | None

    def __post_init__(self) -> None:
        if self.known is not None:
            self.refuse_unknown(self.known)

    def __iter__(self) -> Iterator[str]:
        return iter(self.content)

    def refuse_unknown(self, known: tuple[str, ...]) -> None:
        """Refuse a key that is not known: a misspelt one would silently leave a default in force."""
        for key, value in self.content.items():
            if key not in known:
                self.rules.refuse(f"{self.prefix}{key}", f"must be a known key: {', '.join(known)}", value)

    def get(self, key: str, default: object = _NOTHING) -> object:
        """Return the value of a key; required where there is no default."""
        value = self.content.get(key, default)
        if value is _NOTHING:
            self.rules.refuse(f"{self.prefix}{key}", "must be given", ABSENT)
        return value

    def table(self, key: str, known: tuple[str, ...] | None) -> TomlTable:
        """Return the table under a key."""
        value = self.get(key)
        if not isinstance(value, dict):
            self.rules.refuse(f"{self.prefix}{key}", "must be a table", value)
        return TomlTable(self.rules, f"{self.prefix}{key}.", value, known)


def _asked(
    rules: Rules, top: TomlTable, terms: tuple[str, ...]
) -> DeclaredAttribute | list[DeclaredAttribute]:
    """Return the attribute of an [attribute] table, or those of several [[attribute]] tables.

    Args:
        rules: How to refuse.
        top: The file.
        terms: Keys that the mechanism reads of every attribute.
    """
    value = top.get("attribute")
    if isinstance(value, list):
        if "category" in top:
            rules.refuse(
                "category", "must be [[attribute.category]] below its own [[attribute]]", "[[category]]"
            )
        if not all(isinstance(item, dict) for item in value):
            rules.refuse("attribute", "must be [attribute], or several [[attribute]] tables", value)
        return [
            _one(
                rules,
                TomlTable(rules, f"attribute[{i}].", item, None),
                f"attribute[{i}]",
                terms,
                ("category",),
            )
            for i, item in enumerate(value)
        ]
    asked = _one(rules, top.table("attribute", None), "attribute", terms, ())
    return replace(asked, categories=_categories(rules, "category", top.get("category", [])))


def _one(
    rules: Rules, table: TomlTable, key: str, terms: tuple[str, ...], known: tuple[str, ...]
) -> DeclaredAttribute:
    kind_of_domain = rules.choice(f"{key}.type", table.get("type"), tuple(_ENDS))
    none = ("absent",) if kind_of_domain in ("integer", "number") else ()
    table.refuse_unknown(("id", "kind", "type", *_ENDS[kind_of_domain], *none, *terms, *known))
    categories = _categories(rules, f"{key}.category", table.get("category", []))
    if categories and kind_of_domain == "dictionary":
        rules.refuse(
            "category", "must be left out for a dictionary: its texts are not here", categories[0].name
        )
    identifier = rules.identifier(f"{key}.id", table.get("id"))
    kind = cast(Kind, rules.choice(f"{key}.kind", table.get("kind"), KINDS))
    attribute = Attribute(identifier, kind, _domain(rules, table, key, kind_of_domain))
    return DeclaredAttribute(key, attribute, categories, {term: table.get(term) for term in terms})


def _transition(rules: Rules, top: TomlTable) -> DeclaredTransition | None:
    if "transition" not in top:
        return None
    table = top.table("transition", ("lag", "asks"))
    lag = rules.integer("transition.lag", table.get("lag"), 1, MAX_ROUNDS)
    return DeclaredTransition(lag, cast(Asks, rules.choice("transition.asks", table.get("asks"), ASKS)))


def _domain(rules: Rules, table: TomlTable, key: str, kind: str) -> Domain:
    if kind == "label":
        return LabelDomain(_labels(rules, key, table.get("labels")))
    if kind == "set":
        return SetDomain(LabelDomain(_labels(rules, key, table.get("labels"))))
    if kind == "dictionary":
        digest = table.get("digest")
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
            rules.refuse(
                f"{key}.digest", "must be 64 hexadecimal digits, as survey dictionary prints", digest
            )
        texts = rules.integer(f"{key}.texts", table.get("texts"), 2, MAX_SIZE)
        return DictionaryDomain(texts, bytes.fromhex(digest))
    absent = table.get("absent", False)
    if not isinstance(absent, bool):
        rules.refuse(f"{key}.absent", "must be true or false", absent)
    if kind == "integer":
        low = rules.integer(f"{key}.low", table.get("low"), -MAX_INTEGER, MAX_INTEGER)
        high = rules.integer(f"{key}.high", table.get("high"), -MAX_INTEGER, MAX_INTEGER)
        if not low < high:
            rules.refuse(
                f"{key}.high", f"must be above {key}.low {low}: a domain has two values or more", high
            )
        if (size := high - low + 1 + absent) > MAX_SIZE:
            rules.refuse(f"{key}.high", f"must leave at most {MAX_SIZE} values, not {size}", high)
        return IntegerDomain(low, high, absent)
    low_f = rules.real(f"{key}.low", table.get("low"), -1e300, 1e300)
    high_f = rules.real(f"{key}.high", table.get("high"), -1e300, 1e300)
    if not low_f < high_f:
        rules.refuse(f"{key}.high", f"must be above {key}.low {low_f!r}", high_f)
    return NumberDomain(low_f, high_f, absent)


def _labels(rules: Rules, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 2 <= len(value) <= MAX_SIZE:
        rules.refuse(f"{key}.labels", f"must be a list of 2 to {MAX_SIZE} labels", value)
    seen: dict[str, int] = {}
    for i, item in enumerate(value):
        label = rules.typed(f"{key}.labels[{i}]", item, MAX_LABEL_CHARACTERS)
        if label == MISSING:
            rules.refuse(
                f"{key}.labels[{i}]", f'must not be "{MISSING}", which a row is named already', label
            )
        if label in seen:
            rules.refuse(f"{key}.labels[{i}]", f"must differ from {key}.labels[{seen[label]}]", label)
        seen[label] = i
    return tuple(seen)


def _categories(rules: Rules, where: str, value: object, level: int = 1) -> list[Category]:
    if not isinstance(value, list):
        rules.refuse(where, "must be written as [[category]] tables", value)
    if level > MAX_TREE_LEVELS:
        rules.refuse(where, f"must be nested to at most {MAX_TREE_LEVELS} levels", "more")
    found: list[Category] = []
    taken = {MISSING}
    for i, item in enumerate(value):
        key = f"{where}[{i}]"
        if not isinstance(item, dict):
            rules.refuse(key, "must be a [[category]] table", item)
        table = TomlTable(rules, f"{key}.", item, ("name", "values", "range", "category"))
        name = rules.typed(f"{key}.name", table.get("name"), MAX_NAME_CHARACTERS)
        if name in taken:
            rules.refuse(f"{key}.name", f'must be its own and not "{MISSING}"', name)
        taken.add(name)
        members = [way for way in ("values", "range", "category") if way in item]
        if len(members) != 1:
            rules.refuse(key, "must have either values or range, or categories of its own", sorted(item))
        content = table.get(members[0])
        if members[0] == "category":
            within = _categories(rules, f"{key}.category", content, level + 1)
            if len(within) < 2:
                rules.refuse(f"{key}.category", "must be two or more", len(within))
            found.append(Category(f"{key}.category", name, False, (), within))
            continue
        if not isinstance(content, list) or (len(content) != 2 if members[0] == "range" else not content):
            rule = "must be [lowest, highest]" if members[0] == "range" else "must be a list of values"
            rules.refuse(f"{key}.{members[0]}", rule, content)
        found.append(Category(f"{key}.{members[0]}", name, members[0] == "range", content))
    return found


def _start(rules: Rules, value: object) -> int:
    rule = "must be a date and time in whole seconds with its offset, such as 2026-01-01T00:00:00Z"
    if not isinstance(value, datetime) or value.tzinfo is None or value.microsecond:
        rules.refuse("schedule.start", rule, value)
    return rules.integer("schedule.start", int(value.timestamp()), 0, MAX_START_S)


def _duration(rules: Rules, key: str, value: object, low: int, high: int) -> int:
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        rules.refuse(key, 'must be a duration such as "90s", "15m", "24h" or "7d"', value)
    seconds = int(match[1]) * _SECONDS[match[2]]
    if not low <= seconds <= high:
        rules.refuse(key, f"must be from {low} to {high} seconds", value)
    return seconds
