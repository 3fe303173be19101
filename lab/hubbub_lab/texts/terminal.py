"""The terminal: words on stderr and tables on stdout, where brackets and colons are no markup."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from hubbub_lab.texts.grammar import plain


class _Talk(Console):
    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - as rich has it
        super().print(*(plain(each) if isinstance(each, str) else each for each in objects), **options)


def talk() -> Console:
    """Return stderr, for words on how far the work is: one line each, never wrapped."""
    return _Talk(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def results() -> Console:
    """Return stdout, for tables."""
    return Console(highlight=False, markup=False, emoji=False)
