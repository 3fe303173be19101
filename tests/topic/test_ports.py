"""A port is declared once: the log's in the package of the log, the store's beside the stores."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from hubbub_aggregator.stores.store import GateStore, SharedStore, Store
from hubbub_topic import Log

ROOT = Path(__file__).parents[2]
PACKAGES = ("core", "client", "topic", "collector", "aggregator", "deploy", "results", "authoring", "lab")


def protocols() -> dict[str, list[tuple[str, frozenset[str]]]]:
    """Name -> where a protocol of that name is declared, and its methods."""
    found = defaultdict(list)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases):
                    methods = frozenset(each.name for each in node.body if isinstance(each, ast.FunctionDef))
                    found[node.name].append((path.relative_to(ROOT).as_posix(), methods))
    return found


def test_log_and_store_are_declared_once() -> None:
    found = protocols()
    assert {name for name, places in found.items() if len(places) > 1} == set()
    assert found["Log"][0][0] == "topic/hubbub_topic/log.py"
    for port in (GateStore, SharedStore, Store):
        assert found[port.__name__][0][0] == "aggregator/hubbub_aggregator/stores/store.py"
    logs = [name for name, [(_, methods)] in found.items() if {"append", "read"} <= methods]
    assert logs == [Log.__name__]
    stores = [name for name, [(_, methods)] in found.items() if "save_gates" in methods]
    assert stores == [GateStore.__name__]
