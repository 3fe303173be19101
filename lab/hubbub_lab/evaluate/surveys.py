"""The surveys of an evaluation: one question under several mechanisms and epsilons."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hubbub import Survey
from hubbub.survey import MAX_TITLE_CHARACTERS, DictionaryDomain, read_compiled
from hubbub_authoring import files
from hubbub_authoring.files import Draft, DraftAttribute, survey_text
from hubbub_authoring.mechanisms import REGISTERED
from hubbub_lab.errors import LabError
from hubbub_lab.texts import plain

AUTO: Final = "auto"
OWN: Final = "own"
"""The mechanism that a survey file names itself."""

_SCHEDULE: Final = {
    "start": datetime(2026, 1, 1, tzinfo=UTC),
    "round": "1d",
    "rounds": 2,
    "lateness": "1h",
    "skew": "5m",
}
"""Two rounds, so that a clock may be one ahead; errors and epsilon of a report do not depend on any of it."""


def mechanism_name(text: str) -> str:
    """Return a mechanism's name in survey files; dashes may stand in it, as in pb-grr.

    Raises:
        ValueError: If it is none.
    """
    known = [AUTO, OWN, *(each.name for each in REGISTERED)]
    for name in (text, text.replace("-", "_"), text.replace("-", "")):
        if name in known:
            return name
    raise ValueError(f"a mechanism must be one of {', '.join(known)}, got {text!r}")


class SurveyMaker:
    """One question, compiled anew for every mechanism and epsilon that it is asked with.

    Every mechanism is tuned as "auto" tunes those that it compares, for the most devices of the evaluation;
    the one that a file names keeps the file's keys.

    Args:
        survey: A survey.
        text: Its TOML.
        file: Its name in errors.
        devices: What the design counts on; None for what the survey plans.

    Raises:
        LabError: If its reports tell no value.
    """

    def __init__(self, survey: Survey, text: str, file: str, *, devices: int | None) -> None:
        if not survey.form.tells_values:
            raise LabError(f"{file} must ask for values, got a score: it has a mean alone")
        if survey.form.lag:
            raise LabError(f"{file} must ask for the values of one round, got a transition")
        if survey.form.of_sets:
            raise LabError(f"{file} must ask for one value a device, got a survey of sets")
        self.file, self.title = file, survey.title
        self.attributes, self.epsilon, self.planned_devices = (
            survey.attributes,
            survey.epsilon,
            survey.planned_per_round,
        )
        self._document = tomllib.loads(text)
        self._document.pop("quota", None)
        self._document |= {"schedule": _SCHEDULE, "planned_devices": devices or survey.planned_per_round}
        self._own: dict[str, Any] = self._document["mechanism"]
        self._made: dict[tuple[str, float], Survey] = {}

    @classmethod
    def of_file(cls, path: Path, *, devices: int | None) -> SurveyMaker:
        """Return the question of a survey file; - is stdin.

        Raises:
            SurveyError: If it is no valid survey.
            LabError: If it is a compiled one, or its reports tell no value.
        """
        if read_compiled(path) is not None:
            raise LabError(f"{path}: must be a survey in TOML to be evaluated, got a compiled one")
        text, file = survey_text(path), "stdin" if str(path) == "-" else path.name
        return cls(Survey.parse(text, file=file), text, file, devices=devices)

    @classmethod
    def of_attribute(cls, attribute: DraftAttribute, title: str, *, devices: int) -> SurveyMaker:
        """Return the question for one attribute, which has no survey file."""
        draft = Draft(
            id="evaluation",
            title=plain(title)[:MAX_TITLE_CHARACTERS].strip(),
            epsilon=1.0,
            attributes=(attribute,),
            kind="evolving",
            devices=devices,
            start_s=int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()),
        )
        text, survey = files.drafted(draft)
        return cls(survey, text, title, devices=devices)

    def survey(self, mechanism: str, epsilon: float) -> Survey:
        """Return the survey with a mechanism, tuned, at an epsilon.

        Raises:
            LabError: If the mechanism does not fit the question.
            SurveyError: If it does not compile.
        """
        key = (mechanism, epsilon)
        if key not in self._made:
            keys = self._auto() if mechanism == AUTO else self._own
            if mechanism not in (AUTO, OWN):
                keys = self._tuned(mechanism, epsilon)
            self._made[key] = self._parsed(keys, epsilon)
        return self._made[key]

    @property
    def chooses(self) -> bool:
        """True if the survey's own mechanism is "auto"."""
        return bool(self._own["name"] == AUTO)

    def label(self, mechanism: str, epsilon: float) -> str:
        """Return a mechanism as people read it, with what "auto" chose or the file names."""
        choice = self.survey(mechanism, epsilon).choice
        if choice is not None:
            return f"{mechanism}: {choice.compared[0].label}"
        return f"{OWN}: {self._own['name']}" if mechanism == OWN else mechanism

    def _auto(self) -> dict[str, Any]:
        if self._own["name"] == AUTO:
            return self._own
        kept = {key: value for key, value in self._own.items() if key == "points"}
        return {"name": AUTO} | kept | self._coin()

    def _coin(self) -> dict[str, Any]:
        return {key: value for key, value in self._own.items() if key == "participation"}

    def _tuned(self, mechanism: str, epsilon: float) -> dict[str, Any]:
        """Return the keys of a mechanism as "auto" has found the best of them."""
        choice = self.survey(AUTO, epsilon).choice
        compared = () if choice is None else choice.compared
        fitting = [one for one in compared if math.isfinite(one.cost)]
        for one in fitting:
            if one.mechanism == mechanism:
                return {"name": mechanism, **one.parameters} | self._coin()
        why = next((one.refusal for one in compared if one.mechanism == mechanism and one.refusal), "")
        names = ", ".join(dict.fromkeys(one.mechanism for one in fitting))
        raise LabError(
            f"--mechanisms must fit {self.title} at epsilon {epsilon:g}: auto, {names}; got {mechanism}"
            + (f" ({why})" if why else "")
        )

    def _parsed(self, keys: Mapping[str, Any], epsilon: float) -> Survey:
        document = self._document | {"epsilon": epsilon, "mechanism": dict(keys)}
        made = Survey.parse(toml_text(document), file=self.file)
        for own, known in zip(made.attributes, self.attributes, strict=True):
            if isinstance(own.domain, DictionaryDomain) and isinstance(known.domain, DictionaryDomain):
                own.domain.take(known.domain)
        return made


def toml_text(document: Mapping[str, Any]) -> str:
    """Return TOML of a survey's document: words, numbers, lists, tables and lists of tables."""
    lines: list[str] = []
    _write(document, (), lines)
    return "\n".join(lines) + "\n"


def _write(table: Mapping[str, Any], place: tuple[str, ...], lines: list[str]) -> None:
    later: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            later.append((key, value))
        else:
            lines.append(f"{key} = {_plain(value)}")
    for key, value in later:
        name = ".".join((*place, key))
        for one in value if isinstance(value, list) else [value]:
            lines.append(f"[[{name}]]" if isinstance(value, list) else f"[{name}]")
            _write(one, (*place, key), lines)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return json.dumps(value, ensure_ascii=False)
