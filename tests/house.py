"""Counts of the house: lines by folder, imports past faces, sizes of folders, modules that a device loads.

    python tests/house.py

It prints and asserts nothing; tests/core/test_house.py holds bounds on its counts.

A face is a package or one of its rooms; `hubbub.errors`, `hubbub.lazy` and the two packages' `testing` are
faces of their own.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "hubbub": "core",
    "hubbub_client": "client",
    "hubbub_topic": "topic",
    "hubbub_collector": "collector",
    "hubbub_aggregator": "aggregator",
    "hubbub_deploy": "deploy",
    "hubbub_results": "results",
    "hubbub_authoring": "authoring",
    "hubbub_lab": "lab",
}
PUBLIC = {
    "hubbub.errors",
    "hubbub.version",
    "hubbub.small_file",
    "hubbub.html_table",
    "hubbub.testing",
    "hubbub.lazy",
    "hubbub_client.testing",
}
# Survey.load is public and reads TOML: it alone in core names a room of authors, when it is called.
LOADS = ("hubbub.survey.survey", "hubbub_authoring.files")
CHANNELS = {"Channel", "FiniteChannel", "SetChannel", "DenseChannel"}
FORMS = {"Form", "BaseForm", "Single", "CrossTable", "Score", "Transition"}
# Where comments are needed: the id table, branch and bound, loss grids, the encodings of a report, the
# server's tricks.
DENSE = ("dedup", "branching", "loss_grid", "loss_sum", "report", "wire", "record", "records", "server")
SOURCE = {".py", ".pyi", ".js", ".css", ".html", ".rs"}
WEIGHED = {*PACKAGES.values(), "bench", "tests"}
LOADED = """
import sys, time
import cryptography.hazmat.primitives.asymmetric.ed25519, msgpack, numpy, sqlite3
def memory():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
before, start = memory(), time.perf_counter()
{statement}
took, grown = time.perf_counter() - start, memory() - before
core = sum(name.split(".")[0] == "hubbub" for name in sys.modules)
print(core, took, grown / 1024, "urllib3" in sys.modules)
"""


def modules() -> dict[str, Path]:
    """Every module of the shipped packages, by its dotted name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted((ROOT / folder / package).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def weight() -> dict[str, int]:
    """Lines of every source folder, stubs, JavaScript, styles and Rust included, and of bench and tests."""
    tracked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout.split("\0")
    found: Counter[str] = Counter()
    for name in tracked:
        path = ROOT / name
        if path.suffix in SOURCE and path.parts[len(ROOT.parts)] in WEIGHED and path.is_file():
            folder = "client/web" if name.startswith("client/web/") else name.split("/")[0]
            found[folder] += len(path.read_text(encoding="utf-8").splitlines())
    return dict(found)


def one_importer(graph: dict[str, set[str]]) -> float:
    """The share of modules, faces left out, that exactly one other module knows."""
    known = Counter(other for others in graph.values() for other in others)
    return sum(known[name] == 1 for name in graph) / len(graph)


def given(face: Path) -> dict[str, str]:
    """Name -> module, of what a lazy face gives."""
    stub = face.with_suffix(".pyi")
    if not stub.exists():
        return {}
    return {
        alias.name: node.module
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


@functools.cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return every node of a tree, which is walked once: each count reads them all."""
    return tuple(ast.walk(tree))


def is_name(node: ast.AST, name: str) -> bool:
    """Return whether an expression is that plain name."""
    return isinstance(node, ast.Name) and node.id == name


def typing_only(tree: ast.AST) -> set[ast.AST]:
    """Nodes that type checkers alone read."""
    return {
        child
        for node in nodes(tree)
        if isinstance(node, ast.If) and is_name(node.test, "TYPE_CHECKING")
        for part in node.body
        for child in ast.walk(part)
    }


def in_text(tree: ast.AST, me: str, known: dict[str, Path]) -> set[str]:
    """Modules that a module names as text: a registry loads them later, and no reader of imports sees it."""
    return {
        node.value
        for node in nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known
    } - {me}


def behind(
    tree: ast.AST, me: str, known: dict[str, Path], faces: dict[str, dict[str, str]], *, typed: bool = False
) -> set[str]:
    """Modules that a module reaches through lazy faces; those that type checkers alone read if asked."""
    out: set[str] = set()
    skip = set() if typed else typing_only(tree)
    for node in nodes(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module or node in skip:
            continue
        for alias in node.names:
            if alias.name in faces.get(node.module, {}):
                out.add(faces[node.module][alias.name])
            room = f"{node.module}.{alias.name}"
            for use in nodes(tree) if room in faces else ():
                if isinstance(use, ast.Attribute) and is_name(use.value, alias.asname or alias.name):
                    out |= {faces[room][use.attr]} if use.attr in faces[room] else set()
    return (out & known.keys()) - {me}


def imports(tree: ast.AST, me: str, known: dict[str, Path], *, typed: bool = False) -> set[str]:
    """Modules of ours that a module imports, those inside functions included, type checkers' if asked."""
    out: set[str] = set()
    skip = set() if typed else typing_only(tree)
    for node in nodes(tree):
        if node in skip:
            continue
        if isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom):
            base = me.rsplit(".", node.level)[0] if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                out |= {whole} if whole in known else {module} & known.keys()
    return out - {me}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected groups of several modules (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    out: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = [stack.pop()]
            while group[-1] != node:
                group.append(stack.pop())
            if len(group) > 1:
                out.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return out


def comment_share(path: Path) -> tuple[int, int]:
    """Comment lines, and lines that are not blank, of a file."""
    text = path.read_text(encoding="utf-8")
    lines = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(noqa|type:)", token.string)
    }
    return len(lines), sum(bool(line.strip()) for line in text.splitlines())


def loaded(statement: str) -> str:
    """The cost of one import above its dependencies: a line of the medians of five processes."""
    runs = []
    paths = [str(ROOT / folder) for folder in PACKAGES.values()]
    code = f"import sys; sys.path[:0] = {paths!r}\n" + LOADED.replace("{statement}", statement)
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        runs.append(done.stdout.split())
    seconds, grown = (median(float(run[column]) for run in runs) for column in (1, 2))
    return f"{runs[0][0]} core modules, {seconds:.3f} s, {grown:.1f} MB, urllib3 {runs[0][3]}"


def loaded_core(statement: str) -> int:
    """The number of core modules that one import loads."""
    paths = [str(ROOT / folder) for folder in PACKAGES.values()]
    count = "print(sum(name.split('.')[0] == 'hubbub' for name in sys.modules))"
    code = f"import sys; sys.path[:0] = {paths!r}\n{statement}\n{count}"
    return int(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )


def crossings(graph: dict[str, set[str]], known: dict[str, Path]) -> tuple[list[str], int]:
    """Imports across packages past a face, each as "from -> to", and the number of those through one."""
    past, through = [], 0
    for name, others in graph.items():
        for other in others:
            if other.split(".")[0] != name.split(".")[0]:
                if other in PUBLIC or known[other].name == "__init__.py":
                    through += 1
                else:
                    past.append(f"{name} -> {other}")
    return sorted(past), through


def folder_sizes(known: dict[str, Path]) -> dict[Path, int]:
    """Modules beside the face, by folder."""
    folders: dict[Path, int] = defaultdict(int)
    for path in known.values():
        folders[path.parent] += path.name != "__init__.py"
    return folders


def kind_checks(trees: dict[str, ast.Module]) -> int:
    """Sites that ask by isinstance for a kind of channel or form, outside these classes."""
    bases: dict[str, set[str]] = defaultdict(set)
    for tree in trees.values():
        for node in nodes(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] |= {ast.unparse(base).split(".")[-1] for base in node.bases}
    kinds = set(CHANNELS)
    while more := {name for name, above in bases.items() if above & kinds} - kinds:
        kinds |= more
    kinds |= FORMS
    return sum(
        isinstance(node, ast.Call)
        and is_name(node.func, "isinstance")
        and bool({word.split(".")[-1] for word in re.findall(r"[\w.]+", ast.unparse(node.args[1]))} & kinds)
        and not any(
            isinstance(holder, ast.ClassDef) and holder.name in kinds and node in nodes(holder)
            for holder in nodes(tree)
        )
        for tree in trees.values()
        for node in nodes(tree)
    )


def named_twice(trees: dict[str, ast.Module]) -> list[str]:
    """Names of classes that mean two things."""
    found = Counter(
        node.name for tree in trees.values() for node in nodes(tree) if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, times in found.items() if times > 1)


def lazy_graph(
    graph: dict[str, set[str]], trees: dict[str, ast.Module], known: dict[str, Path]
) -> dict[str, set[str]]:
    """The graph of imports with those that go through lazy faces or are named as text."""
    faces = {name: given(known[name]) for name in trees if known[name].name == "__init__.py"}
    return {
        name: others
        if name in faces
        else others | behind(trees[name], name, known, faces) | in_text(trees[name], name, known)
        for name, others in graph.items()
    }


def knowing(trees: dict[str, ast.Module], known: dict[str, Path]) -> dict[str, set[str]]:
    """The graph of what files know of each other: by name, as text and for type checkers; faces left out."""
    faces = {name: given(known[name]) for name in trees if known[name].name == "__init__.py"}
    return {
        name: (
            imports(tree, name, known, typed=True)
            | behind(tree, name, known, faces, typed=True)
            | in_text(tree, name, known)
        )
        - faces.keys()
        - ({file for file in known if file.startswith(LOADS[1])} if name == LOADS[0] else set())
        for name, tree in trees.items()
        if name not in faces
    }


def main() -> None:
    """Print every count."""
    known = modules()
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in known.items()}
    graph = {name: imports(tree, name, known) for name, tree in trees.items()}
    past, through = crossings(graph, known)
    folders = folder_sizes(known)
    largest = max(folders, key=lambda folder: (folders[folder], str(folder)))
    twice = named_twice(trees)
    comments = [comment_share(path) for name, path in known.items() if name.rsplit(".", 1)[-1] in DENSE]
    share = 100 * sum(count for count, _ in comments) / sum(lines for _, lines in comments)
    print(
        f"imports across packages past a face: {len(past)} (through one: {through})", *past[:20], sep="\n  "
    )
    print(f"files at core's top: {folders[ROOT / 'core' / 'hubbub']} beside the face")
    print(f"largest source folder: {folders[largest]} files beside the face, {largest.relative_to(ROOT)}")
    for statement in ("import hubbub_client", "from hubbub_client import Agent"):
        print(f"{statement}: {loaded(statement)}, of {sum(name.split('.')[0] == 'hubbub' for name in known)}")
    print(f"isinstance sites on channels and forms outside their classes: {kind_checks(trees)}")
    print(f"class names that mean two things: {len(twice)}: {', '.join(twice)}")
    print(f"comment lines in the dense modules: {share:.1f} %")
    found = circles(lazy_graph(graph, trees, known))
    print(
        f"circles of imports, lazy ones and modules named as text included: {len(found)}",
        *(f"{len(group)} files: {' '.join(group)}" for group in found),
        sep="\n  ",
    )
    lines = weight()
    product = sum(count for folder, count in lines.items() if folder not in ("bench", "tests"))
    print(f"lines: product {product:,}", *(f"{name} {lines[name]:,}" for name in sorted(lines)), sep=", ")
    print(f"modules with one importer: {100 * one_importer(knowing(trees, known)):.0f} %")
    found = circles(knowing(trees, known))
    print(
        f"circles of files that know each other, type checkers' imports included: {len(found)}",
        *(f"{len(group)} files: {' '.join(group)}" for group in found),
        sep="\n  ",
    )


if __name__ == "__main__":
    main()
