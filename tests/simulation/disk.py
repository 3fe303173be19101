"""The disk of a world's machines: every write is noted, and power may fail after any of them."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import power_cut
from power_cut import Step

UNSYNCED: tuple[Literal["kept", "lost", "torn"], ...] = ("kept", "lost", "torn")
"""The fates of writes that no sync followed; "kept" is of a process that is killed, and no power cut."""


class Disk:
    """The files of several machines in one folder, those of each by how their names begin."""

    def __init__(self, folder: Path, steps: list[Step]) -> None:
        self._folder, self.steps = folder, steps
        self.full: str | None = None
        """The machine whose disk has no room."""
        # By machine: its files as they were laid out last, and how many steps had been made by then.
        self._begins: dict[str, tuple[dict[str, bytes], int]] = {}

    @property
    def mark(self) -> int:
        """The number of steps made."""
        return len(self.steps)

    def settle(self, machine: str) -> None:
        """Take a machine's files as they are, closed and on disk."""
        files = {path.name: path.read_bytes() for path in self._folder.glob(f"{machine}*")}
        self._begins[machine] = files, len(self.steps)

    def cut(self, machine: str, at: int, unsynced: Literal["kept", "lost", "torn"], seed: bytes) -> None:
        """Lay out what a machine's disk has after a power cut; its files must be closed.

        Args:
            machine: How the names of its files begin.
            at: The cut follows so many steps.
            unsynced: What becomes of what was not synced.
            seed: Of what is torn.
        """
        start, since = self._begins.get(machine, ({}, 0))
        mine = [step for step in self.steps[since:at] if step.path.startswith(machine)]
        left = power_cut.after_cut(start, mine, unsynced=unsynced, chance=random.Random(seed))  # noqa: S311
        for path in self._folder.glob(f"{machine}*"):
            if not path.name.endswith(".lock"):
                path.unlink()
        for name, data in left.items():
            (self._folder / name).write_bytes(data)
        self._begins[machine] = left, len(self.steps)


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """Give a disk that is recorded while the context lasts, or is not where SQLite cannot be reached."""
    if power_cut.library() is None:
        yield Disk(folder, [])
        return
    made = Disk(folder, [])
    is_full = lambda name: made.full is not None and name.startswith(made.full)  # noqa: E731
    with power_cut.recorded(folder, is_full) as steps:
        made.steps = steps
        try:
            yield made
        finally:
            steps.clear()  # what SQLite may still call knows them
