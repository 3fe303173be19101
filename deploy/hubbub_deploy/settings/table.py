"""The table of settings, read from the settings' own classes: names, types, defaults and docstrings.

A setting has one name in three forms: `linger_s` in a file, `HUBBUB_LINGER_S` in the environment,
`--linger-s` on the command line. The table of docs/operations.md is written from these
rows, and a test compares them.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal, TypeAlias

from hubbub_collector import GatewaySettings
from hubbub_deploy.errors import DeployError
from hubbub_deploy.settings.options import LEAST, MOST, WORDS, NodeOptions

Kind: TypeAlias = Literal["int", "float", "str"]
Value: TypeAlias = int | float | str

_RULES: Final = {"int": "an integer", "float": "a finite number", "str": "a text that is not empty"}


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the table.

    Attributes:
        key: Its name in a file.
        kind: The type of its values.
        default: Its value where nobody gives one.
        text: What it does: the first sentence of its class's docstring about it.
        least: The least value of a number.
        most: The greatest.
        words: The only values of a text that has few; else empty.
    """

    key: str
    kind: Kind
    default: Value
    text: str
    least: float = -math.inf
    most: float = math.inf
    words: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"HUBBUB_{self.key.upper()}"

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.key.replace('_', '-')}"

    def parse(self, text: str, name: str) -> Value:
        """Return the value that a text of the environment or the command line stands for.

        Args:
            text: The text.
            name: What an error calls the setting.

        Raises:
            DeployError: If it is no value of this kind, or out of range.
        """
        rule, value = _RULES[self.kind], _value(self.kind, text)
        if self.words:
            rule, value = " or ".join(self.words), text if text in self.words else None
        if self.least > -math.inf:
            rule += f" of at least {self.least:g}"
        if self.most < math.inf:
            rule += f" and at most {self.most:g}"
        if value is None or (not isinstance(value, str) and not self.least <= value <= self.most):
            raise DeployError(f"{name} must be {rule}, got {text!r}")
        return value


def _value(kind: Kind, text: str) -> Value | None:
    if kind == "str":
        return text or None
    try:
        number = int(text) if kind == "int" else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _texts(cls: type) -> dict[str, str]:
    """Return the first sentence that a class's docstring says of each attribute."""
    _, _, found = (inspect.getdoc(cls) or "").partition("Attributes:\n")
    whole = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", found, flags=re.MULTILINE)
    return {key: re.split(r"(?<=[.;:]) ", " ".join(text.split()))[0].rstrip(".;:") for key, text in whole}


def _rows(
    cls: type[NodeOptions] | type[GatewaySettings],
    least: Mapping[str, float],
    most: Mapping[str, float],
    words: Mapping[str, tuple[str, ...]],
) -> tuple[Setting, ...]:
    texts, found = _texts(cls), []
    for field in fields(cls):
        rule = (least.get(field.name, -math.inf), most.get(field.name, math.inf), words.get(field.name, ()))
        text = texts.get(field.name, "")
        found.append(Setting(field.name, field.type, field.default, text, *rule))  # type: ignore[arg-type]  # a test holds types and defaults
    return tuple(found)


GATEWAY: Final = _rows(
    GatewaySettings,
    {field.name: GatewaySettings.least(field.name) for field in fields(GatewaySettings)},
    {},
    {},
)
"""The settings of a gateway: of a node and of a collector."""
NODE: Final = _rows(NodeOptions, LEAST, MOST, WORDS)
"""The other settings of a node."""


def markdown(rows: Iterable[Setting]) -> str:
    """Return the rows as a table of Markdown, for the docs."""
    lines = ["| in a file | environment | command line | default | what it is |", "|---|---|---|---|---|"]
    for row in rows:
        said = f"{row.default:,}" if isinstance(row.default, int) else str(row.default)
        lines.append(f"| `{row.key}` | `{row.variable}` | `{row.flag}` | {said} | {row.text} |")
    return "\n".join(lines) + "\n"
