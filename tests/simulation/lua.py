"""Lua as far as the product's Redis scripts use it: translated to Python, so that the scripts themselves run.

A string is bytes, a number an int or a float, nil is None. Tables are lists with names; nothing but `unpack`
gives more than one value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:--[^\n]*|(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|'(?P<text>[^']*)'"
    r"|(?P<sign>\.\.|==|~=|<=|>=|[-+*/%#(){}\[\],.<>=;:]))"
)
_LEVELS = (("or",), ("and",), ("<", ">", "<=", ">=", "~=", "=="), ("..",), ("+", "-"), ("*", "/", "%"))
_BINARY = {
    "or": "_or({0}, lambda: {1})",
    "and": "_and({0}, lambda: {1})",
    "..": "_cat({0}, {1})",
    "==": "_eq({0}, {1})",
    "~=": "(not _eq({0}, {1}))",
    "+": "(_n({0}) + _n({1}))",
    "-": "(_n({0}) - _n({1}))",
    "*": "(_n({0}) * _n({1}))",
    "/": "(_n({0}) / _n({1}))",
    "%": "(_n({0}) % _n({1}))",
}
_ENDS = {"end", "else", "elseif", ""}


class Table:
    """A table: places from 1 on, and names."""

    def __init__(self, places: Iterable[Any] = (), **names: Any) -> None:
        self.places, self.names = list(places), names

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, str):
            return self.names.get(at)
        return self.places[at - 1] if 1 <= at <= len(self.places) else None

    def __setitem__(self, at: int, value: Any) -> None:
        if at == len(self.places) + 1:
            self.places.append(value)
        else:
            self.places[at - 1] = value

    def __len__(self) -> int:
        return len(self.places)


def _true(value: Any) -> bool:
    return value is not None and value is not False


def _equal(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def tonumber(value: Any) -> Any:
    """Return the number that a text is, nil where it is none."""
    if not isinstance(value, bytes):
        return value
    try:
        return int(value)
    except ValueError:
        try:
            return float(value)
        except ValueError:
            return None


def text(value: Any) -> bytes:
    """Return a number as Lua writes it, and bytes as they are."""
    return (
        value
        if isinstance(value, bytes)
        else (b"%.14g" % value if isinstance(value, float) else b"%d" % value)
    )


class _Translator:
    """A recursive descent over one script."""

    def __init__(self, script: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, script = 0, script.rstrip()
        while at < len(script):
            found = _TOKEN.match(script, at)
            assert found is not None, script[at : at + 40]
            at = found.end()
            self._tokens += [(kind, word) for kind, word in found.groupdict().items() if word is not None]
        self._tokens.append(("end", ""))
        self._at = 0
        self.lines: list[str] = []

    @property
    def _word(self) -> str:
        kind, word = self._tokens[self._at]
        return f"'{word}'" if kind == "text" else word

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _take(self, *words: str) -> bool:
        if self._word in words:
            self._at += 1
            return True
        return False

    def _need(self, word: str) -> None:
        assert self._take(word), (word, self._tokens[self._at - 3 : self._at + 4])

    def block(self, depth: int) -> None:
        """Translate statements up to the end of their block."""
        start = len(self.lines)
        while self._word not in _ENDS:
            self._statement(depth)
        if len(self.lines) == start:
            self._line(depth, "pass")

    def _line(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _statement(self, depth: int) -> None:
        if self._take("local"):
            if self._take("function"):
                self._line(depth, f"def {self._next()}({self._names_in_brackets()}):")
                self.block(depth + 1)
                self._need("end")
                return
            names = ", ".join(self._names())
            self._line(depth, f"{names} = {self._list() if self._take('=') else 'None'}")
        elif self._take("if"):
            self._line(depth, f"if _t({self._expression()}):")
            self._need("then")
            self.block(depth + 1)
            while self._take("elseif"):
                self._line(depth, f"elif _t({self._expression()}):")
                self._need("then")
                self.block(depth + 1)
            if self._take("else"):
                self._line(depth, "else:")
                self.block(depth + 1)
            self._need("end")
        elif self._take("while"):
            self._line(depth, f"while _t({self._expression()}):")
            self._loop(depth)
        elif self._take("for"):
            names = self._names()
            if self._take("in"):
                self._line(depth, f"for {', '.join(names)} in {self._expression()}:")
            else:
                self._need("=")
                bounds = self._list()
                self._line(depth, f"for {names[0]} in _range({bounds}):")
            self._loop(depth)
        elif self._take("return"):
            self._line(depth, f"return {'None' if self._word in _ENDS else self._expression()}")
        else:
            targets = [self._suffixed()]
            while self._take(","):
                targets.append(self._suffixed())
            rest = f" = {self._list()}" if self._take("=") else ""
            self._line(depth, ", ".join(targets) + rest)
        self._take(";")

    def _loop(self, depth: int) -> None:
        self._need("do")
        self.block(depth + 1)
        self._need("end")

    def _names(self) -> list[str]:
        found = [self._next()]
        while self._take(","):
            found.append(self._next())
        return found

    def _names_in_brackets(self) -> str:
        self._need("(")
        names = [] if self._word == ")" else self._names()
        self._need(")")
        return ", ".join(names)

    def _list(self) -> str:
        found = [self._expression()]
        while self._take(","):
            found.append(self._expression())
        return ", ".join(found)

    def _expression(self, level: int = 0) -> str:
        if level == len(_LEVELS):
            return self._unary()
        left = self._expression(level + 1)
        while self._word in _LEVELS[level]:
            sign = self._next()
            right = self._expression(level + 1)
            left = _BINARY.get(sign, f"({{0}} {sign} {{1}})").format(left, right)
        return left

    def _unary(self) -> str:
        if self._take("not"):
            return f"(not _t({self._unary()}))"
        if self._take("#"):
            return f"len({self._unary()})"
        if self._take("-"):
            return f"(-{self._unary()})"
        return self._suffixed()

    def _suffixed(self) -> str:
        kind, word = self._tokens[self._at]
        self._at += 1
        if kind == "text":
            found = repr(word.encode())
        elif word == "(":
            found = f"({self._expression()})"
            self._need(")")
        elif word == "{":
            found = f"_table([{'' if self._word == '}' else self._list()}])"
            self._need("}")
        else:
            found = {"nil": "None", "true": "True", "false": "False"}.get(word, word)
        while True:
            if self._take("["):
                found = f"{found}[{self._expression()}]"
                self._need("]")
            elif self._take("."):
                name = self._next()
                found = f"{found}.{name}" if found in ("redis", "math", "string") else f"{found}[{name!r}]"
            elif self._take("("):
                given = "" if self._word == ")" else self._list()
                found = f"{'*' if found == 'unpack' else ''}{found}({given})"
                self._need(")")
            else:
                return found


class _Text:
    """Lua's `string`."""

    @staticmethod
    def format(form: bytes, *given: Any) -> bytes:
        """Return numbers as a form has them."""
        return form % given


class _Math:
    """Lua's `math`."""

    min = staticmethod(min)


def _ipairs(table: Table) -> Iterator[tuple[int, Any]]:
    return enumerate(table.places, 1)


@lru_cache
def compiled(script: str) -> Callable[[Any, list[bytes], list[bytes]], Any]:
    """Return a script as a function of `redis`, the keys and the arguments."""
    translator = _Translator(script)
    translator.lines.append("def _script(redis, KEYS, ARGV):")
    translator.block(1)
    known = {
        "_t": _true,
        "_and": lambda one, other: other() if _true(one) else one,
        "_or": lambda one, other: one if _true(one) else other(),
        "_eq": _equal,
        "_n": tonumber,
        "_cat": lambda one, other: text(one) + text(other),
        "_table": Table,
        "_range": lambda first, last, step=1: range(int(first), int(last) + 1, int(step)),
        "tonumber": tonumber,
        "unpack": lambda table, first=1, last=None: table.places[first - 1 : last],
        "type": lambda value: b"table" if isinstance(value, Table) else b"other",
        "ipairs": _ipairs,
        "string": _Text,
        "math": _Math,
    }
    exec("\n".join(translator.lines), known)  # noqa: S102 - the product's own scripts
    return lambda redis, keys, given: known["_script"](redis, Table(keys), Table(given))  # type: ignore[operator]
