"""The check of docstrings catches what it is for."""

from __future__ import annotations

import docstrings
import pytest

GOOD = {
    "module": ["The bytes that travel.", "Exact deduplication: 64-bit keys in a table."],
    "class": ["A device that takes signed lists.", "The error that a lease is lost."],
    "function": [
        "Return the digest of a survey.",
        "Raise LedgerLockedError in a fork.",
        "Return f, f' (eq. 4 of Pan).",
    ],
    "property": ["The number of inputs.", "K, how many inputs there are."],
    "value": ["The seconds that it may take. A minute is plenty.", "Seconds between two looks."],
}
BAD = [
    ("module", "What the log holds.", "must not begin with 'What'"),
    ("class", "Where letters are kept.", "must not begin with 'Where'"),
    ("property", "How many inputs there are.", "must not begin with 'How'"),
    ("property", "Whether it is open.", "must not begin with 'Whether'"),
    ("function", "Whoever asks is told.", "must not begin with 'Whoever'"),
    ("module", "The same for sets.", "must not begin with 'The same'"),
    ("function", "Return it", "must end with a full stop"),
    ("function", "Return it. Nothing changes.", "must be one sentence"),
    ("function", "Returns the digest.", "must begin with a verb in the imperative, got 'Returns'"),
    ("function", "The digest of a survey.", "must begin with a verb in the imperative, got 'The'"),
    ("class", "Keeps the counts.", "must begin with an article, got 'Keeps'"),
    ("property", "Return the digest.", "must be a noun phrase, got 'Return'"),
    ("value", "How long it may take. A minute is plenty.", "must not begin with 'How'"),
    ("value", "The same of all rounds", "must end with a full stop"),
]


@pytest.mark.parametrize("kind", GOOD)
def test_plain_first_lines_pass(kind: str) -> None:
    assert [fault for line in GOOD[kind] for fault in docstrings.faults(line, kind)] == []


@pytest.mark.parametrize(("kind", "line", "fault"), BAD)
def test_a_bad_first_line_is_named_with_its_fault(kind: str, line: str, fault: str) -> None:
    assert fault in list(docstrings.faults(line, kind))


def test_every_kind_of_docstring_is_read_with_its_line() -> None:
    source = (
        '"""What it is."""\n'
        "class C:\n"
        '    """Keeps it."""\n'
        "    @property\n"
        "    def p(self):\n"
        '        """Return it."""\n'
        "    async def f(self):\n"
        '        """It is done.\n\n        At length.\n        """\n'
        "def undocumented(): ...\n"
    )
    found = docstrings.check(source)
    assert [fault.split(":")[0] for fault in found] == ["1", "3", "6", "8"]


def test_strings_after_assignments_are_read_as_docstrings_of_values() -> None:
    source = (
        'A = 1\n"""Whether it is one."""\n'
        "class C:\n"
        "    x: int = 2\n"
        '    """How many\n    there are.\n\n    At length.\n    """\n'
        "    def __init__(self):\n"
        "        self.y = 3\n"
        '        """What it holds."""\n'
        '"""A string after a class belongs to nothing."""\n'
    )
    found = docstrings.check(source)
    assert [fault.split(":")[0] for fault in found] == ["2", "5", "12"]


def test_a_comment_begins_with_no_question_word() -> None:
    source = "# What is left.\nx = 1\n    # It is kept.\n    # Which is why.\ny = 'a'  # Where it was\n"
    assert list(docstrings.comments(source)) == [(1, "# What is left.")]


SECTIONS = '''
class Box:
    """A box.

    Attributes:
        width: How wide it is.
        pace: How fast it is.

    Raises:
        ValueError: Never.
    """

    width: int

    def move(self, far: int, *, fast: bool) -> None:
        """Move it.

        Args:
            far: How far.
            quick: Whether to hurry:
                not needed: in general.
        """
'''


def test_a_section_names_only_what_is_there() -> None:
    found = docstrings.check(SECTIONS)
    assert len(found) == 2, found
    assert found[0].endswith("names what is not there: 'pace'")
    assert found[1].endswith("names what is not there: 'quick'")


def test_a_tree_without_source_does_not_pass(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docstrings, "ROOT", tmp_path)
    assert docstrings.main() == 1
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "bad.py").write_text('"""What it is."""\n')
    assert docstrings.main() == 1
    assert "core/bad.py:1: must not begin with 'What'" in capsys.readouterr().err
