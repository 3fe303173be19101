"""The forms of surveys, one registration each: modules are named as text, and loaded when a survey comes.

The form of one attribute (`single`) is not among them: it is older, and canonical bytes have a layout of its
own for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from hubbub.errors import WireError
from hubbub.survey.domain import Attribute
from hubbub.survey.form import Form, FormEntry

if TYPE_CHECKING:
    from hubbub import estimation

AnyEstimator: TypeAlias = "estimation.Estimator"
"""The estimators that `Survey.estimator` may give: called with counts and n, each gives an Estimate."""


@dataclass(frozen=True)
class FormRegistration:
    """One form, by name.

    Attributes:
        name: In canonical bytes, the first of what `Form.to_spec` gives.
        module: Where its entry is, as `ENTRY`.
    """

    name: str
    module: str


FORMS: Final = (
    FormRegistration("table", "hubbub.survey.table"),
    FormRegistration("score", "hubbub.survey.score"),
    FormRegistration("tree", "hubbub.survey.label_tree"),
    FormRegistration("transition", "hubbub.survey.transition"),
    FormRegistration("set", "hubbub.survey.sets.item_set"),
    FormRegistration("bundle", "hubbub.survey.bundle"),
    FormRegistration("key_value", "hubbub.survey.key_value"),
)
"""Every form of canonical bytes but that of one attribute, oldest first: messages and lists have them so."""


def form_from_spec(attributes: tuple[Attribute, ...], fields: list[object], epsilon: float) -> Form:
    """Return the form of a description; the inverse of `Form.to_spec`.

    `Form.check` then checks its parts.

    Args:
        attributes: The attributes of the survey.
        fields: As `to_spec` gave it, after any trip through msgpack. It is not trusted.
        epsilon: Declared.

    Raises:
        WireError: If it is not a description of a known form.
    """
    for each in FORMS:
        if fields and fields[0] == each.name:
            return _entry(each).read(attributes, fields, epsilon)
    raise WireError(f"a form must be {' or '.join(each.name for each in FORMS)}, got {fields[:1]!r:.80}")


def forms_by_mechanism() -> Mapping[str, FormEntry]:
    """Return the entries of the forms that have a mechanism of their own, by its name; loads all of them."""
    entries = map(_entry, FORMS)
    return {entry.mechanism: entry for entry in entries if entry.mechanism}


def _entry(registration: FormRegistration) -> FormEntry:
    entry: FormEntry = import_module(registration.module).ENTRY
    return entry
