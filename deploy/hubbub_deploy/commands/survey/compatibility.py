"""`hubbub survey check OLD NEW`: refuse a change that would put answers to two questions under one name.

Reports carry their survey's digest, so counts never mix. Names can: releases, histories and comparisons go by
id and version, and what a device remembers of an attribute goes by the attribute's id.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import load_survey

if TYPE_CHECKING:
    from hubbub import Survey
    from hubbub.survey import Attribute

Surveys: TypeAlias = Mapping[tuple[str, int], "Survey"]

_SUFFIXES: Final = (".toml", ".bin")
# The parts of a survey's canonical bytes, in the words of its file.
_PARTS: Final[Mapping[str, Callable[[Survey], object]]] = {
    "title": lambda survey: survey.title,
    "attributes": lambda survey: survey.attributes,
    "categories": lambda survey: list(survey.category_names[:-1]),
    "values of categories": lambda survey: survey.form.to_spec(),
    "epsilon": lambda survey: survey.epsilon,
    "mechanism": lambda survey: survey.channel.to_spec(),
    "start": lambda survey: survey.start_s,
    "round": lambda survey: survey.round_s,
    "rounds": lambda survey: survey.rounds,
    "rotation": lambda survey: survey.rotation,
    "lateness": lambda survey: survey.lateness_s,
    "skew": lambda survey: survey.skew_s,
    "minimum_cohort": lambda survey: survey.minimum_cohort,
    "planned_devices": lambda survey: survey.planned_devices,
    "quota": lambda survey: survey.quota,
}
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class Compatibility:
    """The result of comparing surveys before and after a change.

    Attributes:
        reasons: Why the change must not be made; empty where it may.
        notes: What it does, where it may.
    """

    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run(options: argparse.Namespace) -> int:
    """Compare two files or two folders, and return 1 where the change mixes answers."""
    old, new = _read(options.file), _read(options.new)
    if options.file.is_file() and options.new.is_file():
        (before,), (after,) = {key[0] for key in old}, {key[0] for key in new}
        if before != after:
            raise DeployError(f"{options.new} must be an edition of survey {before!r}, got {after!r}")
    found = compare(old, new)
    if options.json:
        facts = {"compatible": not found.reasons, "reasons": found.reasons, "notes": found.notes}
        print(json.dumps(facts, ensure_ascii=False))
    else:
        for word, lines in (("refused", found.reasons), ("note", found.notes)):
            for line in lines:
                print(f"{word:8} {line}")
        print("incompatible" if found.reasons else "compatible")
    return 1 if found.reasons else 0


def _read(path: Path) -> Surveys:
    """Return the surveys of a file or a folder by id and version.

    Raises:
        DeployError: If a folder holds two that differ under one id and version, or none.
        SurveyError: If one is no valid survey.
    """
    files = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES) if path.is_dir() else [path]
    found: dict[tuple[str, int], Survey] = {}
    for file in files:
        survey = load_survey(file)
        if found.setdefault((survey.id, survey.version), survey).digest != survey.digest:
            raise DeployError(
                f"{file}: survey {survey.id!r} must have a new version when it changes: another file of "
                f"{path} has version {survey.version}"
            )
    if not found:
        raise DeployError(f"{path} must hold survey files ({' or '.join(_SUFFIXES)}), got none")
    return found


def compare(old: Surveys, new: Surveys) -> Compatibility:
    """Return what speaks against a change of surveys, and what it does.

    Args:
        old: The surveys before, by id and version.
        new: The surveys after.
    """
    found = Compatibility()
    latest = {id_: max(number for name, number in old if name == id_) for id_, _ in old}
    for (id_, version), survey in new.items():
        if (same := old.get((id_, version))) is not None:
            if same.digest != survey.digest:
                found.reasons.append(
                    f"survey {id_!r} must have a new version when it changes: version {version} differs in "
                    f"{_listed(same, survey)}"
                )
        elif id_ not in latest:
            found.notes.append(f"survey {id_!r} version {version} is new")
        elif version < latest[id_]:
            found.reasons.append(
                f"survey {id_!r} must have a version above {latest[id_]}, the latest before, got {version}"
            )
        else:
            found.notes.extend(_edition(old[id_, latest[id_]], survey))
    ids = {id_ for id_, _ in new}
    for id_, version in sorted(key for key in old if key[0] not in ids):
        found.notes.append(f"survey {id_!r} version {version} is gone: what it counted stays under its name")
    found.reasons.extend(_attributes(old, new))
    return found


def _edition(old: Survey, new: Survey) -> list[str]:
    """Return notes about a new edition."""
    name = f"survey {new.id!r} version {new.version}"
    notes = [
        f"{name} is counted and released apart from version {old.version}; it changes {_listed(old, new)}"
    ]
    if old.input_labels == new.input_labels:
        notes.append(f"{name} can be compared with version {old.version} value by value")
    elif old.category_names == new.category_names:
        notes.append(f"{name} can be compared with version {old.version} by categories only")
    else:
        notes.append(f"{name} has other values and categories than version {old.version}: compare nothing")
    if new.round_start_s(0) < old.round_end_s(old.rounds - 1):
        notes.append(
            f"{name} begins before version {old.version} ends: a device that is offered both may answer "
            f"both, and spends {old.epsilon:g} and {new.epsilon:g}"
        )
    return notes


def _attributes(old: Surveys, new: Surveys) -> list[str]:
    """Return the attributes that mean two things: a device refuses whatever asks for the other one."""
    known: dict[str, tuple[Attribute, str]] = {}
    reasons = []
    for survey in (*old.values(), *new.values()):
        name = f"survey {survey.id!r} version {survey.version}"
        for attribute in survey.attributes:
            first, where = known.setdefault(attribute.id, (attribute, name))
            if first != attribute:
                what = "kind" if first.kind != attribute.kind else "values"
                reasons.append(
                    f"attribute {attribute.id!r} must keep its {what} under its id, or get another id: "
                    f"{name} has others than {where}, and a device that registered one refuses the other"
                )
    return list(dict.fromkeys(reasons))


def _listed(old: Survey, new: Survey) -> str:
    """Return the parts that differ, with their values where these are short."""
    parts = []
    for name, part in _PARTS.items():
        before, after = part(old), part(new)
        if before != after:
            said = f"{before} -> {after}"
            parts.append(f"{name} ({said})" if len(said) <= _LONGEST else name)
    return ", ".join(parts) or "its bytes"
