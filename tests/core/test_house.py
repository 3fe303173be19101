"""The house stays in order: tests/house.py counts, and these bounds hold."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[1] / "house.py"
MOST_AT_CORES_TOP = 10
MOST_IN_A_FOLDER = 15
MOST_KIND_CHECKS = 9
MOST_CORE_MODULES_ON_A_DEVICE = 42
MOST_ONE_IMPORTER = 0.25
"""The share of modules that one other module knows: parts of it, most of them."""
LARGEST_CIRCLE = 4
"""Files that know each other in a circle, type checkers' imports included: the parts of one connection."""


MOST_LINES = {
    "core": 30_600,
    "authoring": 9_305,
    "lab": 7_270,
    "client": 7_605,
    "client/web": 8_797,
    "collector": 4_122,
    "topic": 2_230,
    "aggregator": 16_880,
    "results": 1_070,
    "deploy": 11_980,
    "bench": 16_890,
}
"""A change that adds a capability says what it weighs, and raises its folder's bar by that."""
SLACK = 500
"""A bar that far above its folder holds nothing: lower it."""


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def trees(house: ModuleType) -> dict[str, ast.Module]:
    """Every module of the product, parsed once."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in house.modules().items()}


def test_imports_pass_through_faces_and_run_in_no_circle(
    house: ModuleType, trees: dict[str, ast.Module]
) -> None:
    known = house.modules()
    assert {name.split(".")[0] for name in known} == set(house.PACKAGES)
    graph = {name: house.imports(tree, name, known) for name, tree in trees.items()}
    past, through = house.crossings(graph, known)
    assert past == [] and through > 0
    assert house.circles(house.lazy_graph(graph, trees, known)) == []
    knowing = house.knowing(trees, known)
    assert max(map(len, house.circles(knowing))) <= LARGEST_CIRCLE
    assert 0.0 < house.one_importer(knowing) <= MOST_ONE_IMPORTER
    assert house.circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_a_module_named_as_text_counts_as_an_import_and_a_type_checkers_import_does_not(
    house: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "__init__.pyi").write_text("from p.thing import Thing as Thing\n")
    texts = {
        "p.registry": 'TABLE = {"grr": "p.grr"}',
        "p.grr": "from p.registry import TABLE",
        "p.typed": "if TYPE_CHECKING:\n    from p import Thing\n",
        "p.thing": "from p.typed import that\nclass Thing: ...",
        "p": "",
    }
    trees = {name: ast.parse(text) for name, text in texts.items()}
    known = {name: tmp_path / ("__init__.py" if name == "p" else f"{name}.py") for name in texts}
    graph = {name: house.imports(tree, name, known) for name, tree in trees.items()}
    assert house.circles(house.lazy_graph(graph, trees, known)) == [["p.grr", "p.registry"]]
    assert house.circles(house.knowing(trees, known)) == [["p.grr", "p.registry"], ["p.thing", "p.typed"]]


def test_no_folder_outgrows_what_was_said_of_it(house: ModuleType) -> None:
    lines = house.weight()
    assert {name: lines[name] for name, most in MOST_LINES.items() if lines[name] > most} == {}
    assert {name: lines[name] for name, most in MOST_LINES.items() if lines[name] < most - SLACK} == {}
    assert set(lines) == {*MOST_LINES, "tests"}


def test_folders_stay_small(house: ModuleType) -> None:
    sizes = house.folder_sizes(house.modules())
    assert 0 < sizes[house.ROOT / "core" / "hubbub"] <= MOST_AT_CORES_TOP
    assert {folder: size for folder, size in sizes.items() if size > MOST_IN_A_FOLDER} == {}


def test_class_names_mean_one_thing_and_few_places_ask_for_a_kind(
    house: ModuleType, trees: dict[str, ast.Module]
) -> None:
    assert house.named_twice(trees) == []
    assert house.kind_checks(trees) <= MOST_KIND_CHECKS
    asked = ast.parse("class Near(SetChannel): pass\nclass Near(Other): pass\nisinstance(it, Near)")
    assert house.named_twice({"two": asked}) == ["Near"] and house.kind_checks({"two": asked}) == 1


def test_the_agents_import_loads_few_modules_of_core(house: ModuleType) -> None:
    assert 0 < house.loaded_core("from hubbub_client import Agent") <= MOST_CORE_MODULES_ON_A_DEVICE


def test_benchmarks_use_only_names_that_their_neighbours_have() -> None:
    # Nothing else looks: the type checker leaves bench/ alone, and most of it runs only as evidence.
    bench = Path(__file__).parents[2] / "bench"
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in bench.glob("*.py")}
    known = {name: _defined(tree) for name, tree in trees.items()}
    missing = [
        f"{name}: {used}.{word}"
        for name, tree in trees.items()
        for used, word in _used(tree, set(trees))
        if word not in known[used]
    ]
    assert missing == []
    assert list(_used(ast.parse("import kafka\nfrom run import line\nkafka.gone()"), {"kafka", "run"})) == [
        ("run", "line"),
        ("kafka", "gone"),
    ]


def _defined(tree: ast.Module) -> set[str]:
    """Return the names that a module has at its top."""
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    made = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assigned = (
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return imported.union(made, assigned)


def _used(tree: ast.Module, modules: set[str]) -> list[tuple[str, str]]:
    """Return (module, name) of all that is taken from modules by `from` or by attribute."""
    found = [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module in modules
        for alias in node.names
    ]
    imported = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in modules
    }
    return found + [
        (imported[node.value.id], node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported
    ]
