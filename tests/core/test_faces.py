"""Faces load nothing by themselves, give what they list, and list what type checkers see."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACES = {
    ".".join(path.parent.relative_to(ROOT).parts[1:]): path
    for folder in (
        "core",
        "client",
        "topic",
        "collector",
        "aggregator",
        "deploy",
        "results",
        "authoring",
        "lab",
    )
    for path in sorted((ROOT / folder).glob("hubbub*/**/__init__.py"))
}


def typed_names(tree: ast.Module) -> list[str]:
    return sorted(
        alias.name
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in node.body
        if isinstance(part, ast.ImportFrom)
        for alias in part.names
    )


@pytest.mark.parametrize("name", FACES)
def test_a_face_gives_every_name_that_it_lists_and_type_checkers_see_the_same(name: str) -> None:
    face = import_module(name)
    listed = list(getattr(face, "__all__", []))
    assert typed_names(ast.parse(FACES[name].read_text(encoding="utf-8"))) == sorted(listed)
    for each in listed:
        assert getattr(face, each) is not None
    assert set(listed) <= set(dir(face))
    with pytest.raises(AttributeError, match="no attribute 'nothing_of_ours'"):
        face.nothing_of_ours  # noqa: B018


def test_there_is_a_face_over_every_folder_of_modules() -> None:
    folders = {path.parent for face in FACES.values() for path in face.parents[0].rglob("*.py")}
    assert {path.parent for path in FACES.values()} == folders
    assert len(FACES) > 30


def test_a_name_wins_over_the_module_of_that_name_in_any_order() -> None:
    code = (
        "import hubbub.mechanisms.grr, hubbub.mechanisms.unary\n"
        "from hubbub_authoring import mechanisms\n"
        "first = mechanisms.grr(4, epsilon=1.0).outputs\n"
        "import hubbub.mechanisms.levels.levels, hubbub_authoring.mechanisms.boosted.boosted\n"
        "print(first, callable(mechanisms.levels), callable(mechanisms.boosted), callable(mechanisms.unary))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "True", "True", "True"]


def test_an_agent_loads_a_device_and_no_more() -> None:
    code = (
        "import sys\n"
        "from hubbub_client import Agent\n"
        "names = [name for name in sys.modules if name.split('.')[0] == 'hubbub']\n"
        "rooms = {'.'.join(name.split('.')[:2]) for name in names if name.count('.') > 1}\n"
        "print(len(names), 'urllib3' in sys.modules, *sorted(rooms))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, http, *rooms = done.stdout.split()
    assert int(count) <= 42
    assert http == "False"
    assert not {
        "hubbub_authoring.files",
        "hubbub_authoring.design",
        "hubbub_lab.continuous_noise",
        "hubbub.estimation",
    } & set(rooms)
