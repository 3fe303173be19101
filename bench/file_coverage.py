"""The coverage of 95 % intervals when one data set is replayed many times.

    .venv/bin/python bench/file_coverage.py CSV SURVEY [RUNS]

The column is the attribute's id. Run r draws from seed r: the figures can be had again. It prints the share
of hits and the mean and spread of (estimate - truth) / standard error, which should be 0 and 1; cells of one
run depend on each other, so there is no tolerance here: the test suite has that.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from hubbub import Survey
from hubbub.testing import seeded
from hubbub_deploy.commands.replay.csv_replay import replay
from hubbub_lab.evaluation import read_people, values_of


def main(arguments: list[str]) -> int:
    """Replay, and print one line per kind of quantity."""
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    path, survey = Path(arguments[0]), Survey.load(arguments[1])
    runs = int(arguments[2]) if len(arguments) == 3 else 100
    column = survey.attribute.id
    values = values_of(survey.attribute, read_people(path, [column])[column]).held
    hits: dict[str, list[bool]] = defaultdict(list)
    scores: dict[str, list[float]] = defaultdict(list)
    squares: dict[str, list[float]] = defaultdict(list)
    for seed in range(runs):
        for row in replay(survey, values, source=seeded(seed)).rows:
            hits[row.kind].append(row.covers_truth)
            scores[row.kind].append((row.estimate - row.truth) / row.error)
            squares[row.kind].append((row.estimate - row.truth) ** 2)
    print(f"{survey.title}: {len(values):,} devices, {runs} runs, epsilon {survey.epsilon:g}")
    for kind, found in hits.items():
        score = np.array(scores[kind])
        rms = np.sqrt(np.mean(squares[kind]))
        print(
            f"  {kind:9} {np.mean(found):7.2%} of {len(found):6} intervals hit; "
            f"score mean {score.mean():+.3f}, spread {score.std():.3f}; rms error {rms:.5f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
