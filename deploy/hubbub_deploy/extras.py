"""The distribution's extras: which of them brings a package that is missing, and its version."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from typing import Final

from hubbub.version import DISTRIBUTION

# Packages that are installed under another name than they are imported by.
_INSTALLED_AS: Final = {"faust": "faust-streaming"}
# Small ones first: what several bring is not fetched with more than it needs.
_PREFERRED: Final = ("node", "demo", "design", "cluster", "speed", "export", "results", "bench")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


def extra_of(module: str) -> str | None:
    """Return the smallest extra that brings a module's package, None where none does.

    Args:
        module: The name that could not be imported, such as "starlette.routing".
    """
    name = module.partition(".")[0]
    wanted = _plain(_INSTALLED_AS.get(name, name))
    try:
        listed = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # run from its sources
        return None
    bringing = {
        extra[1]
        for requirement in listed
        if (found := _NAME.match(requirement))
        and _plain(found[0]) == wanted
        and (extra := _EXTRA.search(requirement))
    }
    return next((extra for extra in _PREFERRED if extra in bringing), None)


def missing(module: str) -> str:
    """Return the sentence for a package that is not installed: what to type, and what brings it."""
    name, extra = module.partition(".")[0], extra_of(module)
    target = _INSTALLED_AS.get(name, name) if extra is None else f"{DISTRIBUTION}[{extra}]"
    return f"the package {name} must be installed: pip install '{target}'"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
