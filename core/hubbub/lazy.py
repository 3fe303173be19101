"""Faces that load a module only when one of its names is asked for (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType


class _Face(ModuleType):
    """A package whose listed names win over submodules of the same name, in any order of loading."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in self.__dict__.get("_shown", ()):
            return  # the import system binds a submodule to its package; here a function has that name
        super().__setattr__(name, value)


def attach(package: str, modules: Mapping[str, Sequence[str]]) -> None:
    """Make names of modules importable from a package, each module loaded when asked for.

    Type checkers read the package's `TYPE_CHECKING` imports instead; a test holds the two alike.

    Args:
        package: The package's `__name__`; called from its `__init__.py`.
        modules: Module -> the names that it gives; a module without names is given itself, by its last name.
    """
    face = sys.modules[package]
    where = {name: module for module, names in modules.items() for name in names}
    whole = {module.rpartition(".")[2]: module for module, names in modules.items() if not names}

    def get(name: str) -> object:
        if name in whole:
            return import_module(whole[name])
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(where[name]), name)
        face.__dict__[name] = value
        return value

    def names() -> list[str]:
        return sorted({*face.__dict__, *where, *whole})

    face.__dict__.update(_shown=frozenset(where), __getattr__=get, __dir__=names)
    face.__class__ = _Face
