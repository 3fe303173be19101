"""The rule for the first line of a docstring, held in every source package and in bench/ by `make check`.

A first line is one plain sentence. A function's begins with a verb in the imperative ("Return ...",
"Raise ..."), a class's with an article, and none with a question word or with "The same". The docstring of a
constant or an attribute, a string after its assignment, may have several sentences, but begins like the
others. What the sections Args and Attributes name is there: a field that was renamed would otherwise keep its
old name for readers. No comment begins with a question word either.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

ROOT: Final = next(
    folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists()
)
PACKAGES: Final = (
    "core",
    "client",
    "topic",
    "collector",
    "aggregator",
    "deploy",
    "results",
    "authoring",
    "lab",
    "bench",
)

BANNED: Final = ("What", "Whether", "How", "Where", "Whoever", "Who", "Why", "Which", "The same")
ARTICLES: Final = frozenset({"A", "An", "The", "One", "Two", "Every", "Any", "All", "Some", "Several"})
VERBS: Final = frozenset(
    [
        "Accept",
        "Give",
        "Let",
        "Receive",
        "Add",
        "Answer",
        "Append",
        "Apply",
        "Archive",
        "Ask",
        "Begin",
        "Bind",
        "Bound",
        "Bring",
        "Build",
        "Call",
        "Change",
        "Check",
        "Choose",
        "Clear",
        "Climb",
        "Close",
        "Collect",
        "Compare",
        "Compile",
        "Compute",
        "Connect",
        "Consume",
        "Convert",
        "Copy",
        "Count",
        "Create",
        "Cut",
        "Deal",
        "Decide",
        "Declare",
        "Decode",
        "Delete",
        "Discard",
        "Divide",
        "Do",
        "Draw",
        "Drop",
        "Encode",
        "End",
        "Ensure",
        "Erase",
        "Estimate",
        "Fill",
        "Find",
        "Forget",
        "Format",
        "Free",
        "Go",
        "Grow",
        "Hand",
        "Handle",
        "Have",
        "Hold",
        "Judge",
        "Keep",
        "Lay",
        "Let",
        "Load",
        "Log",
        "Look",
        "Lower",
        "Make",
        "Map",
        "Mark",
        "Merge",
        "Migrate",
        "Move",
        "Note",
        "Open",
        "Pair",
        "Parse",
        "Pause",
        "Pin",
        "Prepare",
        "Print",
        "Process",
        "Produce",
        "Project",
        "Publish",
        "Put",
        "Query",
        "Raise",
        "Read",
        "Rebuild",
        "Record",
        "Refuse",
        "Register",
        "Release",
        "Remember",
        "Remove",
        "Rename",
        "Render",
        "Replace",
        "Replay",
        "Reserve",
        "Reset",
        "Restore",
        "Return",
        "Revoke",
        "Round",
        "Run",
        "Sample",
        "Save",
        "Say",
        "Scale",
        "Seal",
        "See",
        "Send",
        "Serve",
        "Set",
        "Settle",
        "Show",
        "Skip",
        "Solve",
        "Sort",
        "Split",
        "Start",
        "Step",
        "Stop",
        "Store",
        "Sum",
        "Sync",
        "Take",
        "Tell",
        "Test",
        "Try",
        "Turn",
        "Update",
        "Use",
        "Validate",
        "Verify",
        "Void",
        "Wait",
        "Walk",
        "Watch",
        "Work",
        "Write",
        "Kill",
        "Lose",
        "Measure",
        "Upload",
        "Yield",
    ]
)
"""Verbs that a function's first line may begin with; a new one is added here by whoever needs it."""

_SECOND_SENTENCE: Final = re.compile(r"[a-z0-9)`\]][.!?] +[A-Z`]")
_ABBREVIATION: Final = re.compile(r"\b(e\.g|i\.e|eq|cf|vs)\. ")


def faults(line: str, kind: str) -> Iterator[str]:
    """Yield what is wrong with the first line of a docstring.

    Args:
        line: The first line.
        kind: "module", "class", "property", "function", or "value" for a constant's or an attribute's, whose
            first line is its first paragraph.
    """
    first = line.split(maxsplit=1)[0] if line.strip() else ""
    for banned in BANNED:
        if re.match(rf"{banned}\b", line):
            yield f"must not begin with {banned!r}"
    if not line.endswith("."):
        yield "must end with a full stop"
    if kind != "value" and _SECOND_SENTENCE.search(_ABBREVIATION.sub("", line)):
        yield "must be one sentence"
    word = first.strip(",:;.")
    if kind == "function" and word not in VERBS:
        yield f"must begin with a verb in the imperative, got {first!r}"
    if kind == "class" and word not in ARTICLES:
        yield f"must begin with an article, got {first!r}"
    if kind == "property" and word in VERBS:
        yield f"must be a noun phrase, got {first!r}"


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the first line and the kind of every docstring of a module."""
    for node in ast.walk(tree):
        yield from ((number, line, "value") for number, line in _values(node))
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if text is None:
            continue
        yield node.body[0].lineno, text.split("\n", 1)[0], _kind(node)


def _values(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line number and the first paragraph of every string that follows an assignment."""
    body: list[ast.stmt] = getattr(node, "body", None) or []
    for before, after in pairwise(body if isinstance(body, list) else []):
        if (
            isinstance(before, ast.Assign | ast.AnnAssign)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            yield after.lineno, " ".join(after.value.value.split("\n\n", 1)[0].split())


def _kind(node: ast.AST) -> str:
    if isinstance(node, ast.Module):
        return "module"
    if isinstance(node, ast.ClassDef):
        return "class"
    decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", [])]
    return "property" if any(each.endswith("property") for each in decorators) else "function"


_SECTION: Final = re.compile(r"^(?:Args|Attributes):\n((?:(?:    .*)?\n)*(?:    .*)?)", re.MULTILINE)
_ENTRY: Final = re.compile(r"^    (\w+):", re.MULTILINE)


def strangers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line number and name of whatever a section names that its function or class does not have."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        named = [
            name
            for section in _SECTION.findall(ast.get_docstring(node) or "")
            for name in _ENTRY.findall(section)
        ]
        have = _names(node) if isinstance(node, ast.ClassDef) else _parameters(node)
        yield from ((node.body[0].lineno, name) for name in named if name not in have)


def _parameters(node: ast.AST) -> set[str]:
    return {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}


def _names(node: ast.ClassDef) -> set[str]:
    """Return the fields, attributes, parameters and methods of a class."""
    names = _parameters(node)
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            names.add(each.id)
        elif isinstance(each, ast.Attribute):
            names.add(each.attr)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(each.name)
    return names


_COMMENT: Final = re.compile(rf"^ *# (?:{'|'.join(BANNED)})\b.*")


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of every comment that begins as no docstring may."""
    before = ""
    for number, line in enumerate(source.splitlines(), 1):
        if _COMMENT.match(line) and not before.lstrip().startswith("#"):
            yield number, line.strip()
        before = line


def check(source: str) -> list[str]:
    """Return the faults of a module's docstrings and comments, each with its line."""
    tree = ast.parse(source)
    found = [
        f"{number}: {fault}: {line!r}"
        for number, line, kind in docstrings(tree)
        for fault in faults(line, kind)
    ]
    found += [
        f"{number}: a comment begins with a question word: {line!r}" for number, line in comments(source)
    ]
    return found + [
        f"{number}: a section names what is not there: {name!r}" for number, name in strangers(tree)
    ]


def main() -> int:
    """Print every fault in the source packages, and return 1 if there is any."""
    found = read = 0
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            read += 1
            for fault in check(path.read_text(encoding="utf-8")):
                found += 1
                print(f"{path.relative_to(ROOT)}:{fault}", file=sys.stderr)
    if not read:
        print("no source was found to check", file=sys.stderr)
    return int(bool(found) or not read)


if __name__ == "__main__":
    sys.exit(main())
