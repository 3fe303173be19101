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


def stubbed(path: Path) -> list[tuple[str, str]]:
    """Module and name of everything that a stub lists, read as type checkers do."""
    tree = ast.parse(path.with_suffix(".pyi").read_text(encoding="utf-8"))
    assert all(isinstance(node, ast.ImportFrom) and node.module and not node.level for node in tree.body)
    assert all(alias.asname == alias.name for node in tree.body for alias in node.names)
    return [(node.module, alias.name) for node in tree.body for alias in node.names]


STUBBED = [name for name, path in FACES.items() if path.with_suffix(".pyi").exists()]


def test_a_face_without_a_stub_gives_nothing() -> None:
    """A room that is entered by its modules alone, within its own package, has a sentence and no names."""
    for name in set(FACES) - set(STUBBED) - {"hubbub_aggregator.counting.compiled", "hubbub_deploy.commands"}:
        said = ast.parse(FACES[name].read_text(encoding="utf-8")).body
        assert len(said) == 1 and isinstance(said[0], ast.Expr), name


@pytest.mark.parametrize("name", STUBBED)
def test_a_face_gives_every_name_of_its_stub_and_shows_nothing_else(name: str) -> None:
    face, pairs = import_module(name), stubbed(FACES[name])
    names = [each for _, each in pairs]
    assert sorted(names) == sorted(set(names)) == face.__all__
    for module, each in pairs:
        whole = f"{module}.{each}"
        assert getattr(face, each) is (
            import_module(whole) if module == name else getattr(import_module(module), each)
        )
    assert [each for each in dir(face) if not each.startswith("__")] == [
        each for each in sorted(names) if not each.startswith("__")
    ]
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
