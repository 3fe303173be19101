"""Agent, collector and worker, and store, each beside a model, for longer than CI: what was run, as a table.

    python bench/machines.py                       100 lives of 50 steps each
    python bench/machines.py --lives 20 --steps 30

The machines are those of tests/property (`test_*_machine.py`), with new examples every time. A life that
differs from its model ends the run with the shortest one that does, as hypothesis found it.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

ROOT = Path(__file__).parents[1]
MACHINES = {
    "agent": ("test_agent_machine", "AgentMachine"),
    "collector, log and worker": ("test_counting_machine", "CountingMachine"),
    "store": ("test_store_machine", "StoreMachine"),
}


def module_of(name: str) -> ModuleType:
    """Return a module of tests/property, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "property" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Run each machine and print what its lives did."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lives", type=int, default=100)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", choices=MACHINES)
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # a log that is made to fail says so every time
    sys.path.insert(0, str(ROOT / "tests" / "harness"))
    print("| machine | lives of so many steps | seconds | what they did |")
    print("|---|---|---|---|")
    for title in [options.only] if options.only else MACHINES:
        name, machine = MACHINES[title]
        module, began = module_of(name), time.monotonic()
        run_state_machine_as_test(
            getattr(module, machine),
            settings=settings(
                max_examples=options.lives,
                stateful_step_count=options.steps,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        seen: Counter[str] = module.SEEN
        did = "; ".join(f"{what} {n:,}" for what, n in sorted(seen.items()))
        took = time.monotonic() - began
        print(f"| {title} | {options.lives} x {options.steps} | {took:.0f} | {did} |", flush=True)


if __name__ == "__main__":
    main()
