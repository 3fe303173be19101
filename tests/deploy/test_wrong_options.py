"""Every option of every command that takes a number, a time or a choice: wrong values are named and refused.

The cases are read off the command line itself, so a new option is tried without a word here.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from hubbub_deploy.cli import _parser, main
from hubbub_deploy.commands import arguments

WRONG = {
    arguments.positive: ("0", "-4", "1.5", "many", ""),
    arguments.whole: ("-1", "2.5", "x"),
    arguments.port: ("-1", "70000", "http"),
    arguments.seconds: ("-1", "nan", "inf", "soon"),
    arguments.share: ("-0.1", "1.1", "nan", "half"),
    arguments.rate: ("0", "-1", "inf", "fast"),
    arguments.duration: ("0s", "2", "two days", "-1d"),
    arguments.place: ("1", "a:b", "-1:0"),
    float: ("much", ""),
    int: ("1.5", "some"),
}
"""Values that a type must refuse."""


def leaves(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple]:
    """Every command with its words, one name for each."""
    verbs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not verbs:
        yield words, parser
    for action in verbs:
        named = {id(each): (name, each) for name, each in reversed(action.choices.items())}
        for name, each in named.values():
            yield from leaves(each, (*words, name))


def cases() -> list[tuple[tuple[str, ...], str, str]]:
    found = []
    for words, parser in leaves(_parser()):
        for action in parser._actions:
            if not action.option_strings or action.nargs == 0:
                continue
            option = action.option_strings[-1]
            wrong = ("nothing of the kind",) if action.choices else WRONG.get(action.type, ())
            found += [(words, option, value) for value in wrong]
    return found


CASES = cases()


@pytest.mark.parametrize("words", sorted({words for words, _, _ in CASES}), ids=" ".join)
def test_a_wrong_value_is_misuse_that_names_option_and_value(words, capsys) -> None:
    for option, value in ((option, value) for command, option, value in CASES if command == words):
        given = [value, value] if option in ("--integer", "--number") else [value]
        with pytest.raises(SystemExit) as ended:
            main([*words, f"{option}={value}"] if len(given) == 1 else [*words, option, *given])
        assert ended.value.code == 2, (option, value)
        out, err = capsys.readouterr()
        assert out == "", (option, value)
        last = err.strip().splitlines()[-1]
        assert last.startswith(f"hubbub {' '.join(words)}: error: ") and option in last
        assert repr(value) in last or f"got {value}" in last


def test_enough_doors_are_tried() -> None:
    assert len(CASES) >= 100
    assert {words[0] for words, _, _ in CASES} >= {
        "node",
        "simulate",
        "demo",
        "replay",
        "survey",
        "agent",
        "topic",
    }
