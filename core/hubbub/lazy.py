"""Faces that load a module only when one of its names is asked for (PEP 562).

A face lists its names once, in the `__init__.pyi` beside its `__init__.py`: type checkers read that, and so
does `attach`. A statement is `from hubbub.channels.channel import Channel as Channel`, and there is no other.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from types import ModuleType
from typing import Final

_LINE: Final = re.compile(r"^from ([\w.]+) import (\([^)]*\)|[^\n(]+)", re.MULTILINE)
_NAME: Final = re.compile(r"(\w+) as ")


class _Face(ModuleType):
    """A package whose listed names win over submodules of the same name, in any order of loading."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in self.__dict__.get("_shown", ()):
            return  # the import system binds a submodule to its package; here a function has that name
        super().__setattr__(name, value)


def given(stub: str) -> dict[str, str]:
    """Return the module of every name that the text of a face's stub lists."""
    return {name: module for module, names in _LINE.findall(stub) for name in _NAME.findall(names)}


def attach(package: str) -> None:
    """Make the names of a face's stub importable from it, each module loaded when asked for.

    Args:
        package: The face's `__name__`; called from its `__init__.py`.
    """
    face = sys.modules[package]
    spec = face.__spec__
    data = spec.loader.get_data(f"{spec.origin}i")  # type: ignore[union-attr]  # a file's loader, or a zip's, has it
    where = given(data.decode())

    def get(name: str) -> object:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if where[name] == package:  # a room, which is given whole
            return import_module(f"{package}.{name}")
        value = getattr(import_module(where[name]), name)
        face.__dict__[name] = value
        return value

    def names() -> list[str]:
        return sorted({name for name in face.__dict__ if name.startswith("__")} | set(where))

    del face.__dict__["attach"]
    shown = frozenset(name for name, module in where.items() if module != package)
    face.__dict__.update(_shown=shown, __all__=sorted(where), __getattr__=get, __dir__=names)
    face.__class__ = _Face
