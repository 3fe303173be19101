"""Rules for every test: one hypothesis profile, markers that follow from the folder, one device."""

from __future__ import annotations

import functools
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure. In CI the same examples come every time; at a desk new ones do.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# Where a shell runs the tests in the background it has Ctrl-C ignored, and so would all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start processes by the hundred, and each compiles all that it imports where no bytecode is kept.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = False, ""
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(sys.prefix, "pycache")))

# A broker that lives a minute is not worth the work of the JVM's second compiler.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

MARKED_FOLDERS = ("integration", "statistical")

# All else is marked quick: under a minute on two quiet cores. What is here takes some seconds of a processor.
NOT_QUICK = (
    *MARKED_FOLDERS,
    "aggregator/counting/test_dedup.py",
    "aggregator/release/test_judgement.py",
    "aggregator/release/test_judgement_of_all.py",
    "aggregator/release/test_release_curve.py",
    "aggregator/release/test_release_of_trees.py",
    "aggregator/release/test_verification.py",
    "aggregator/runners/test_retention.py",
    "aggregator/runners/test_worker.py",
    "authoring",
    "bench",
    "client/agent/test_bundle_agent.py",
    "client/agent/test_rotating_agent.py",
    "client/ledger/test_ledger.py",
    "client/surveys/test_list_memory.py",
    "client/test_agent_lists.py",
    "client/test_agent_owner.py",
    "collector/batching/test_writer.py",
    "collector/test_token_issuer.py",
    "collector/test_writer.py",
    "compat/test_formats.py",
    "conformance/test_second_implementation.py",
    "conformance/test_trees.py",
    "conformance/test_web_device.py",
    "core/estimation/alerts/test_alerts.py",
    "core/estimation/alerts/test_always_valid.py",
    "core/estimation/alerts/test_still_crowds.py",
    "core/estimation/alerts/test_windows.py",
    "core/estimation/rounds/test_change.py",
    "core/estimation/rounds/test_trend.py",
    "core/estimation/tables/test_table_statistics.py",
    "core/estimation/test_crowd.py",
    "core/estimation/test_cumulative.py",
    "core/estimation/trees/test_tree.py",
    "core/filter/test_regression.py",
    "core/mechanisms",
    "core/numeric/test_packed_subsets.py",
    "core/numeric/test_subsets.py",
    "core/shuffling/test_shuffling.py",
    "core/survey/test_forms.py",
    "core/test_docstrings.py",
    "core/test_engineers_face.py",
    "core/test_extending.py",
    "core/test_house.py",
    "core/test_houses.py",
    "deploy",
    "lab",
    "property",
    "results/test_reader.py",
    "simulation",
    "topic/test_sqlite_log.py",
)

# Modules of tests/integration that share one broker.
ON_KAFKA = ("test_kafka", "test_cluster", "test_log_replay")

# Modules whose tests share something that takes half a minute to make.
TOGETHER = ("conformance/test_release_checkers.py", "core/test_house.py", "deploy/test_file_memory.py")

# What takes longest and has a shorter relative that always runs; `make evidence NAME=long` runs these.
LONG = (
    "aggregator/release/test_disclosure.py::test_no_combination_of_what_is_published_depends_on_fewer_reports_than_a_cohort[1000",
    "authoring/design/test_design.py::test_trade_offs_are_drawn[d.png",
    "bench/test_faults.py::test_a_test_that_fails_or_is_skipped_or_is_not_there_does_not_hold",
    "bench/test_poisoning.py::test_alerts_are_seldom_false_and_see_one_liar_in_twenty",
    "bench/test_subsampling.py::test_the_best_rate_is_no_worse_than_any_other",
    "client/surveys/test_list_memory.py::test_a_survey_of_as_many_elements_as_any_may_have_takes_no_more_than_they_do",
    "core/estimation/alerts/test_always_valid.py::test_a_year_of_days_is_watched[flat",
    "core/estimation/alerts/test_windows.py::test_a_still_crowd_raises_no_more_than_stated_however_often_the_reference_begins[grr",
    "core/estimation/rounds/test_change.py::test_change_of_a_value_that_nobody_had_is_covered[3.0",
    "core/estimation/rounds/test_change.py::test_change_of_fresh_rounds_is_covered",
    "core/estimation/test_crowd.py::test_intervals_of_the_crowd_hold_its_share[levels-",
    "deploy/commands/test_programme.py::test_standard_errors_are_as_simulated",
    *(
        f"core/estimation/rounds/test_change.py::test_change_of_memoised_rounds_is_covered_whoever_joins[setting{i}]"
        for i in (1, 2, 3, 5, 6, 7, 8, 9)
    ),
    *(
        "statistical/test_memoised_changes.py::"
        f"test_change_of_memoised_answers_is_covered_by_releases_of_every_mechanism[{name}]"
        for name in (
            "levels",
            "orbits",
            "pbgrr",
            "tree",
            "tree, grr",
            "hashing",
            "piecewise",
            "mean at its end",
        )
    ),
    "core/filter/test_regression.py::test_no_answers_to_accepted_regressions_exceed_the_budget",
    *(
        f"lab/continuous_noise/test_profile.py::test_the_worst_pair_is_that_of_a_scan_a_hundred_times_denser[law{i}-"
        for i in (1, 3)
    ),
    *(
        f"simulation/test_worlds.py::test_every_mistake_is_found[{mistake}"
        for mistake in (
            "nobody asks whether Redis came back older",
            "a late batch is answered as accepted",
            "a save compares no offset",
            "retention waits for no list of reports",
        )
    ),
    "statistical/test_transitions.py::test_pairs_of_five_values_have_the_variance_that_was_derived[",
    "integration/test_agent_kill.py::test_a_kill_before_any_statement_of_the_very_first_answers_leaves_one_noise",
    *(
        f"integration/test_agent_power_cut.py::test_a_power_cut_at_any_write_loses_nothing_that_was_sent[{fate}"
        for fate in ("lost", "kept")
    ),
    "integration/test_cluster_commands.py::test_simulated_devices_are_set_beside_a_release_of_the_cluster",
    "integration/test_cluster_commands.py::test_a_dashboard_paused_past_its_lease_gives_way_and_stands_by",
    "integration/test_demo.py::test_demo_without_a_seed_differs_every_time",
    *(
        f"integration/page/test_page_widths.py::test_nothing_is_wider_than_its_box_{where}[between"
        for where in ("with_every_fact", "in_any_state")
    ),
    "integration/test_readme.py::test_every_command_of_a_page_runs_as_it_stands[docs/bundle.md",
    *(
        f"integration/test_redis_losses.py::test_loss_of_any_key_is_noticed_or_does_no_harm[{moment}-{lose}"
        for moment, lose in (
            ("while all run", "lose_the_first"),
            ("before a load", "lose_the_last"),
            ("before a release", "lose_the_first"),
            ("before another release", "lose_the_last"),
        )
    ),
    "integration/test_kafka_counting.py::test_crash_loop_ends_when_the_operator_gives_up_what_is_gone",
    "integration/test_kafka_counting.py::test_plain_worker_and_faust_release_the_same_bytes",
    *(
        f"statistical/test_rotating_panel.py::test_{name}"
        for name in (
            "a_panel_has_so_much_less_variance_than_a_budget_cut_in_twelve[3-",
            "a_panel_has_so_much_less_variance_than_a_budget_cut_in_twelve[91-",
            "intervals_of_the_crowd_hold_in_turns_where_those_of_the_devices_counted_do_not[6000",
        )
    ),
    "integration/test_kafka_counting.py::test_workers_that_come_and_go_count_every_report_once",
)


@pytest.fixture
def clock():
    """A device's clock, ten seconds into the first round of the harness's surveys."""
    from devices import Clock
    from surveys import START_S

    return Clock(START_S + 10)


@pytest.fixture
def collector():
    """A collector that takes every report and keeps it."""
    from devices import Collector

    return Collector()


@pytest.fixture
def open_agent(tmp_path: Path, clock, collector):
    """A function that opens the agent of one ledger; what is open is closed afterwards."""
    from devices import opener

    with opener(tmp_path, clock, collector) as make:
        yield make


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out of `-m quick` what is not: it need not be imported to be deselected."""
    if config.option.markexpr == "quick" and _is_in(collection_path, NOT_QUICK):
        return True
    return None


@functools.cache
def _is_in(path: Path, places: tuple[str, ...]) -> bool:
    return any(path.is_relative_to(Path(__file__).parent / place) for place in places)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by their folder, so that `-m "not integration"` never misses one that forgot to say so.

    Where tests run in several processes, those of one integration module stay together with its servers,
    and those on Kafka with its broker: pytest-xdist reads the groups in this same hook, after this.
    """
    short = pytest.mark.skipif("HUBBUB_TEST_LONG" not in os.environ, reason="long: make evidence NAME=long")
    for item in items:
        listed = item.nodeid.removeprefix("tests/").startswith(LONG) and _is_in(item.path, ("",))
        if listed or item.get_closest_marker("only_long"):
            item.add_marker(pytest.mark.long)
            item.add_marker(short)
        for folder in MARKED_FOLDERS:
            if _is_in(item.path, (folder,)):
                item.add_marker(folder)
        if not _is_in(item.path, NOT_QUICK):
            item.add_marker("quick")
        stem = item.path.stem
        if _is_in(item.path, TOGETHER):
            item.add_marker(pytest.mark.xdist_group(stem))
        if _is_in(item.path, ("integration",)):
            item.add_marker(pytest.mark.xdist_group("kafka" if stem.startswith(ON_KAFKA) else stem))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Ends a run whose groups the workers would not see, each of which would start servers of its own."""
    if not getattr(session.config.option, "loadgroup", False):
        return
    for item in session.items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid} must name its group, which this pytest hides from xdist")
