"""Every command block of README and of the first tutorials runs as it stands, in order, in a fresh checkout.

Changed is the port alone, by the flag and the address that a page itself gives. `make` targets are asked what
they would do, because tests of their own run them; pip needs a package index, so that `make evidence
NAME=install` runs those lines.
"""

from __future__ import annotations

import contextlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import environment
from redis_harness import free_port

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
PORT = "8780"
COMMAND = ".venv/bin/hubbub "
SERVERS = ("node", "agent page")
PAGES = [
    ("README.md", {"make", "survey", "node", "simulate"}, 0, "visits.toml"),
    (
        "docs/first-survey.md",
        {"survey", "node", "simulate", "replay", "evaluate", "python"},
        1,
        "out/visits-v1.json",
    ),
    ("docs/bundle.md", {"survey", "node", "simulate", "python"}, 2, "five.toml"),
    ("docs/app.md", {"survey", "node", "python", "agent"}, 1, "ledger.db"),
    ("docs/install.md", {"pip"}, 0, "README.md"),
]
"""A page, the commands that it must run, its blocks of Python, and a file that stands there afterwards."""
MOST_WORDS = 700
_FENCED = r"^```(\w*)\n(.*?)^```"
_INDENTED = r"(^ {4}\S[^\n]*\n(?:^ {4,}[^\n]*\n)*)"
_BLOCK = re.compile(f"{_FENCED}|{_INDENTED}", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and text of each block: "sh" for an indented one, "" for what a command prints."""
    return [
        ("sh", textwrap.dedent(found[3])) if found[3] else (found[1], found[2])
        for found in _BLOCK.finditer(text)
    ]


def checkout(folder: Path) -> Path:
    """Return a copy of the files that git knows, with the virtual environment that `make` would make."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(Path(sys.prefix))
    return folder


@contextlib.contextmanager
def serving(words: list[str], folder: Path) -> Iterator[str]:
    """A command that runs until it is stopped, and the first line that it prints."""
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        assert process.stdout is not None
        yield process.stdout.readline()
        process.terminate()
        assert process.wait(120) in (0, -15)  # the owner's page ends at any signal
    finally:
        process.kill()
        process.communicate()


def run(words: list[str], folder: Path) -> None:
    ended = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, timeout=300, env=environment()
    )
    assert ended.returncode == 0, (words, ended.stdout, ended.stderr)


@pytest.mark.parametrize(("name", "runs", "pythons", "made"), PAGES)
def test_every_command_of_a_page_runs_as_it_stands(
    tmp_path: Path, name: str, runs: set[str], pythons: int, made: str
) -> None:
    port, folder, ran = str(free_port()), checkout(tmp_path), []
    page = (ROOT / name).read_text(encoding="utf-8")
    built = runpy.run_path(str(ROOT / "bench" / "install.py"))["built_lines"]()
    with contextlib.ExitStack() as servers:
        for language, text in blocks(page):
            text = text.replace(PORT, port)  # noqa: PLW2901 - the port that --port and the address give
            if language == "python":
                run([str(folder / ".venv" / "bin" / "python"), "-c", text], folder)
                ran.append("python")
            if language != "sh":
                continue
            for line in text.splitlines():
                command = line.split("  #")[0].strip()
                if command.startswith("make "):
                    target = command.split()[1]
                    assert re.search(rf"^{target}:", (folder / "Makefile").read_text(), re.MULTILINE), target
                    ran.append("make")
                elif command.startswith("pip ") or command == "hubbub --version":
                    assert command in built, f"make evidence NAME=install does not run {command}"
                    ran.append("pip")
                else:
                    assert command.startswith(COMMAND), f"{name} has a command that no rule runs: {command}"
                    words = [str(folder / COMMAND.strip()), *shlex.split(command.removeprefix(COMMAND))]
                    if command.removeprefix(COMMAND).startswith(SERVERS):
                        assert "http://127.0.0.1:" in servers.enter_context(serving(words, folder))
                    else:
                        run(words, folder)
                    ran.append(command.removeprefix(COMMAND).split()[0])
    assert set(ran) == runs
    assert ran.count("python") == pythons
    assert (folder / made).is_file()


def test_readme_is_read_in_three_minutes() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MOST_WORDS


def _shell(line: str) -> list[str]:
    import shlex

    return shlex.split(line)


def test_a_block_is_found_wherever_it_stands() -> None:
    text = "a\n\n    x --y\n    z\n\nb\n\n```python\nimport q\n```\n\n```\nprinted\n```\n"
    assert blocks(text) == [("sh", "x --y\nz\n"), ("python", "import q\n"), ("", "printed\n")]
