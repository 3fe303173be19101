"""The rule of what may be published of a round, beside exact linear algebra over single reports."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import gcd

import numpy as np
import pytest
from surveys import LABELS

from hubbub.survey import Survey, step_of
from hubbub_aggregator.release.disclosure import (
    MOST_CUTS,
    UNKNOWN,
    AcceptedSizes,
    Recount,
    Shown,
    compared_issuers,
    fewest,
    least_cut,
    why_no_recount,
    without_small,
)
from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate, advance

Document = frozenset[int]
"""The reports that one document counts."""

HEALTH = Survey.parse(LABELS)


def test_the_least_cut_is_the_least_of_all_cuts() -> None:
    rng = np.random.default_rng(28)
    for _ in range(500):
        n = int(rng.integers(1, 8))
        weights = np.triu(rng.integers(0, 9, (n, n)) * (rng.random((n, n)) < rng.random()), 1)
        weights = (weights + weights.T).astype(np.int64)
        sides = [np.array(side, dtype=bool) for side in itertools.product([False, True], repeat=n)]
        cuts = {int(weights[np.ix_(side, ~side)].sum()) for side in sides} - {0}
        assert least_cut(weights) == min(cuts, default=None)


def reduced(vector: list[int]) -> list[int]:
    divisor = gcd(*vector) or 1
    return [each // divisor for each in vector]


def independent(vectors: Sequence[Sequence[int]]) -> list[int]:
    """The places of vectors that are no combination of those before, by exact elimination."""
    rows: list[tuple[int, list[int]]] = []
    found = []
    for place, vector in enumerate(vectors):
        left = list(vector)
        for pivot, row in rows:
            if left[pivot]:
                a, b = row[pivot], left[pivot]
                left = reduced([a * x - b * y for x, y in zip(left, row, strict=True)])
        if any(left):
            rows.append((next(i for i, x in enumerate(left) if x), left))
            found.append(place)
    return found


def least_support(documents: Collection[Document]) -> int:
    """The fewest reports that any combination of documents depends on, above 0, by exact linear algebra.

    Every support is looked for: report by report, those that the same documents count at once, the
    combination either is 0 there, which takes a dimension, or is not, which takes the reports.
    """
    columns = list(documents)
    sizes: dict[tuple[int, ...], int] = {}
    for report in frozenset().union(*columns):
        row = tuple(int(report in column) for column in columns)
        sizes[row] = sizes.get(row, 0) + 1
    kept = independent(list(zip(*sizes, strict=True)))
    rows = sorted((([row[i] for i in kept], size) for row, size in sizes.items()), key=lambda each: -each[1])
    best = sum(sizes.values()) + 1

    def look(place: int, basis: list[list[int]], weight: int) -> None:
        nonlocal best
        if weight >= best or not basis:
            return
        if place == len(rows):
            best = weight
            return
        row, size = rows[place]
        values = [sum(x * y for x, y in zip(row, each, strict=True)) for each in basis]
        pivot = next((i for i, value in enumerate(values) if value), None)
        if pivot is None:
            look(place + 1, basis, weight)
            return
        a = values[pivot]
        look(
            place + 1,
            [
                reduced([a * x - value * y for x, y in zip(each, basis[pivot], strict=True)])
                for i, (each, value) in enumerate(zip(basis, values, strict=True))
                if i != pivot
            ],
            weight,
        )
        look(place + 1, basis, weight + size)

    look(0, [[int(i == j) for j in range(len(kept))] for i in range(len(kept))], 0)
    return best


def labels(documents: dict[str, Document], intervals: Sequence[Document]) -> int:
    """The free numbers of intervals and groups: nodes less parts of the graph."""
    parent: dict[object, object] = {}

    def root(node: object) -> object:
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    ground = "group", frozenset[str]()
    for report in frozenset().union(*documents.values()):
        inside = [("interval", i) for i, each in enumerate(intervals) if report in each]
        group = "group", frozenset(name for name, each in documents.items() if report in each)
        group = group[0], frozenset(name for name in group[1] if not name.startswith(("step", "release")))
        parent[root(inside[0] if inside else ground)] = root(group)
    return len(parent) - len({root(node) for node in parent})


@dataclass
class Round:
    """A random round, report by report, and what the rule lets out of it.

    Attributes:
        issuers: Whom each report came from, in the order of arrival.
        quota: The most reports that count.
        cohort: The fewest reports.
        step: What a step waits for.
    """

    issuers: list[str | None]
    quota: int
    cohort: int
    step: int
    shown: Shown = field(default_factory=Shown)
    documents: dict[str, Document] = field(default_factory=dict)

    def accepted(self, until: int | None = None, without: Collection[str] = ()) -> list[int]:
        """The reports that count of those that had come, in order."""
        come = [i for i, issuer in enumerate(self.issuers[:until]) if issuer not in without]
        return come[: self.quota]

    def cut(self, until: int | None = None) -> AcceptedSizes:
        counted = self.accepted(until)
        names = [self.issuers[i] for i in counted]
        sizes = {name: names.count(name) for name in sorted({each for each in names if each})}
        return AcceptedSizes(len(counted), {0: len(self.issuers) if until is None else until}, sizes)

    def open(self, looks: Sequence[int]) -> None:
        """Let the round go by, looked at after so many reports, and keep what was shown."""
        gate: PublicationGate | None = None
        for until in looks:
            cut = self.cut(until)
            now = AcceptedCounts(cut.offsets, np.array([cut.n]), cut.n)
            moved = advance(gate, now, shown=self.shown, step=self.step)
            if moved is not gate and moved is not None:
                self.shown, gate = self.shown.add(cut), moved
                if gate.published is not None:
                    self.documents[f"step {len(self.documents)}"] = frozenset(
                        self.accepted(gate.published.cut[0])
                    )
        self.shown = self.shown.until(0 if gate is None or gate.published is None else gate.published.n)
        self.documents["release"] = frozenset(self.accepted())

    @property
    def intervals(self) -> list[Document]:
        ends = [each for name, each in self.documents.items() if name.startswith(("step", "release"))]
        return [after - before for before, after in itertools.pairwise([frozenset(), *ends])]

    @property
    def support(self) -> int:
        return least_support(self.documents.values())

    def is_free(self) -> bool:
        """True if the documents give every group a number of its own."""
        reports = sorted(frozenset().union(*self.documents.values()))
        columns = [[int(report in each) for report in reports] for each in self.documents.values()]
        return len(independent(columns)) == labels(self.documents, self.intervals)


def random_round(rng: np.random.Generator) -> Round:
    """A round of up to four issuers and reports without one, which come in phases of their own."""
    cohort = int(rng.integers(2, 9))
    names: list[str | None] = [None, "a", "b", "c", "d"]
    issuers: list[str | None] = []
    for _ in range(int(rng.integers(1, 6))):
        weights = rng.dirichlet(np.full(5, 0.4))
        size = int(rng.integers(1, 5 * cohort))
        issuers += [names[i] for i in rng.choice(5, size, p=weights)]
    n = len(issuers)
    quota = n if rng.random() < 0.7 else int(rng.integers(1, n + 1))
    step = cohort + int(rng.integers(0, cohort)) * int(rng.random() < 0.3)
    made = Round(issuers, quota, cohort, step)
    made.open([*sorted(rng.integers(1, n + 1, int(rng.integers(0, 30))).tolist())])
    return made


@pytest.mark.parametrize("rounds", [60, 1000])
def test_no_combination_of_what_is_published_depends_on_fewer_reports_than_a_cohort(rounds: int) -> None:
    """In every round, after every document: the least cut is the least support, and a cohort at least.

    Where recounts overlap, so that neither leaves out all that the other does, or let in what a quota kept
    out, groups may have fewer numbers than there are groups; the cut is then at most the support. That no
    more is refused than must be is held in all others.
    """
    rng = np.random.default_rng(5)
    exact = refused = published = compared_in = steps = 0
    for _ in range(rounds):
        made = random_round(rng)
        sealed, cohort = made.cut(), made.cohort
        if sealed.n < cohort:
            continue
        compared: frozenset[str] = compared_issuers(made.shown, sealed, cohort=cohort)
        release = made.documents["release"]
        lines = {name: frozenset(i for i in release if made.issuers[i] == name) for name in sealed.issuers}
        made.documents |= {f"line {name}": lines[name] for name in compared}
        assert made.support == fewest(made.shown, sealed, compared=compared) >= cohort
        for name in lines.keys() - compared:
            assert least_support([*made.documents.values(), lines[name]]) < cohort
        steps += len(made.shown.cuts)
        compared_in += bool(compared)
        recounts: list[Recount] = []
        for _ in range(4):
            without = frozenset(name for name in "abcd" if rng.random() < 0.4)
            if rng.random() < 0.5:
                without = frozenset("abcd"[rng.integers(0, 4)])
            if not without or without in {each.without for each in recounts}:
                continue
            reports = frozenset(made.accepted(without=without))
            asked = [*recounts, Recount(without, len(reports))]
            why = why_no_recount(made.shown, sealed, asked, compared=compared, cohort=cohort)
            if len(reports) < cohort:
                assert why is None  # it is published without a count
                continue
            before = dict(made.documents)
            made.documents["recount " + "".join(sorted(without))] = reports
            cut = fewest(made.shown, sealed, compared=compared, recounts=asked)
            if cut is None:
                assert why is not None
                assert "at most one recount of a round may hold reports that a quota kept out" in why
                made.documents = before
                continue
            apart = all(
                one.without <= other.without or not one.without & other.without
                for one, other in itertools.permutations(asked, 2)
                if not other.without < one.without
            )
            lets_in = any(each - release for each in made.documents.values())
            assert made.is_free() or not apart or lets_in
            if made.is_free():
                exact += 1
                assert made.support == cut
            assert made.support >= cut
            assert (why is None) == (cut >= cohort)
            if why is None:
                recounts, published = asked, published + 1
            else:
                assert f"{cohort} reports, however it is combined, got {cut}" in why
                refused += 1
                made.documents = before
    assert min(exact, published, refused, compared_in, steps) >= rounds // 3


def test_two_recounts_that_leave_a_small_issuer_behind_are_not_both_published() -> None:
    """Without a, plus without b, less the release is the five reports of c."""
    sealed = AcceptedSizes(1205, {0: 9}, {"a": 600, "b": 600, "c": 5})
    without = {name: Recount(frozenset(name), 1205 - size) for name, size in sealed.issuers.items()}
    assert fewest(Shown(), sealed) == 1205
    assert fewest(Shown(), sealed, recounts=[without["a"]]) == 600
    assert fewest(Shown(), sealed, recounts=[without["a"], without["b"]]) == 5
    assert fewest(Shown(), sealed, recounts=[without["c"]]) == 5
    assert compared_issuers(Shown(), sealed, cohort=100) == {"a"}
    assert compared_issuers(Shown(), sealed, cohort=5) == {"a", "b", "c"}


def test_steps_and_issuers_together_leave_no_small_part() -> None:
    """Each interval and each issuer has a cohort; what b sent after the step has not."""
    shown = Shown((AcceptedSizes(300, {0: 5}, {"a": 100, "b": 200}),))
    sealed = AcceptedSizes(503, {0: 9}, {"a": 300, "b": 203})
    assert fewest(shown, sealed) == 203
    assert fewest(shown, sealed, compared=["b"]) == 103  # a before the step, and b after it
    assert compared_issuers(shown, sealed, cohort=104) == frozenset()
    assert compared_issuers(Shown(), sealed, cohort=104) == {"a", "b"}


def test_reports_that_a_quota_kept_out_are_told_by_one_recount_at_most() -> None:
    sealed = AcceptedSizes(400, {0: 9}, {"a": 200, "b": 200})
    lets_in, others = Recount(frozenset("a"), 203), Recount(frozenset("b"), 201)
    assert fewest(Shown(), sealed, recounts=[lets_in]) == 203  # three new ones, and all of b
    assert fewest(Shown(), sealed, compared=["a", "b"], recounts=[lets_in]) == 3
    assert fewest(Shown(), sealed, recounts=[lets_in, others]) is None
    assert fewest(Shown(), sealed, recounts=[Recount(frozenset("a"), 199)]) is None  # one of b has gone


@pytest.mark.parametrize(
    "shown",
    [
        UNKNOWN,
        Shown((AcceptedSizes(401, {0: 1}),)),
        Shown((AcceptedSizes(300, {0: 1}, {"a": 300}),)),
        Shown((AcceptedSizes(9, {}, {"x": 9}),)),
    ],
)
def test_where_what_was_shown_is_not_known_or_contradicts_nothing_is_added(shown: Shown) -> None:
    sealed = AcceptedSizes(400, {0: 9}, {"a": 200, "b": 200})
    assert fewest(shown, sealed) is None
    assert compared_issuers(shown, sealed, cohort=1) == frozenset()
    recount = Recount(frozenset("a"), 200)
    assert why_no_recount(shown, sealed, [recount], compared=(), cohort=1) is not None
    assert why_no_recount(Shown(), sealed, [recount], compared=(), cohort=1) is None


def test_a_recount_of_more_issuers_than_are_told_apart_is_refused() -> None:
    sealed = AcceptedSizes(400, {0: 9}, {"a": 200, "": 200})
    why = why_no_recount(Shown(), sealed, [Recount(frozenset("a"), 200)], compared=(), cohort=1)
    assert why == "more issuers vouched for its reports than are told apart"


def test_what_was_shown_is_read_as_it_was_kept_and_nothing_else_is_known() -> None:
    shown = Shown(
        (AcceptedSizes(100, {0: 4, 1: 6}, {"a": 60}), AcceptedSizes(300, {0: 9, 1: 9}, {"a": 70, "b": 5}))
    )
    assert Shown.decode(shown.encode()) == shown
    assert Shown.decode(UNKNOWN.encode()) == UNKNOWN
    for data in (b"", b"[]", b"{}", b'{"known": true, "cuts": [[1]]}', b'{"known": true}', b"\xff"):
        assert Shown.decode(data) == UNKNOWN


def test_a_step_waits_for_a_cohort_or_a_thousandth_of_those_planned_and_a_round_has_a_thousand() -> None:
    assert step_of(HEALTH) == 100  # of 5,000 planned
    assert step_of(Survey.parse(LABELS.replace("5000", "100001"))) == 101
    shown = Shown(tuple(AcceptedSizes(100 * i, {0: i}) for i in range(1, MOST_CUTS)))
    assert shown.may_add(100_000, {0: 1000}, step=100)
    assert not shown.may_add(99_999, {0: 1000}, step=100)
    assert not shown.may_add(100_000, {0: 998}, step=100)  # behind one that was shown
    assert not shown.may_add(100_000, {1: 1000}, step=100)
    assert not shown.add(AcceptedSizes(100_000, {0: 1000})).may_add(10**9, {0: 10**6}, step=100)


def test_old_releases_say_of_small_issuers_how_many_and_no_more() -> None:
    told = {"output": 3, "share": 1.0, "others_share": 0.2, "p_value": 0.3}
    document = {"round": 0, "issuers": [{"issuer": "a", "accepted": 100, **told}, {"accepted": 99, **told}]}
    untold = dict.fromkeys(told)
    assert without_small(document, 100)["issuers"] == [document["issuers"][0], {"accepted": 99, **untold}]
    assert without_small(document, None)["issuers"][0] == {"issuer": "a", "accepted": 100, **untold}
    assert without_small({"round": 0}, 100) == {"round": 0}
