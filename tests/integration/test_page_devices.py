"""Devices in pages of chromium: what they owe their owner whatever tabs, reloads and kills do."""

from __future__ import annotations

import hashlib
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import independent_bound
import page_devices
import pytest
from browser import CHROMEDRIVER, CHROMIUM, Browser, running_browser
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from node_fixture import World, in_round, wait_until
from surveys import AGE_BY_SEX, LABELS, START_S, VISITS

from hubbub.survey import dictionary_of
from hubbub.survey.signed_list import SurveyList
from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_client.agent.encoded_value import channel_input, encode
from hubbub_deploy.cli import main

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="chromium is not at hand"),
]

# `make evidence NAME=page-devices` takes the larger ones.
LONG_FORM = "HUBBUB_TEST_LONG" in os.environ
KILLS, ROUNDS, TAB_ROUNDS, CROWD = (200, 2_600, 500, 1_000) if LONG_FORM else (10, 400, 60, 20)
BUDGET = 0.01 * ROUNDS + 2.1
DAY_S = 86_400
GOLDEN = Path(__file__).parents[1] / "golden"


def changed(text: str, *changes: tuple[str, str]) -> Survey:
    for old, new in (("version = 1", 'version = 1\nledgers = ["durable", "site-data"]'), *changes):
        assert old in text
        text = text.replace(old, new)
    return Survey.parse(text)


LONG = [
    changed(LABELS, ("rounds = 3", f"rounds = {ROUNDS}"), ("epsilon = 1.0", "epsilon = 0.01")),
    changed(AGE_BY_SEX, ("rounds = 2", f"rounds = {ROUNDS}")),
]
LIFE = {"start": START_S, "length": DAY_S, "budget": BUDGET}


def check_answers(
    surveys: list[Survey], reports: list[wire.Report], told: list[dict[str, Any]], final: dict[str, Any]
) -> None:
    """Every answer that a page told of has come, each round once, and the account covers all of them."""
    came: dict[tuple[bytes, int], set[tuple[bytes, object]]] = defaultdict(set)
    for each in reports:
        came[each.digest, each.round].add((each.id, each.symbol))
    assert all(len(seen) == 1 for seen in came.values()), "a round was answered twice"
    acknowledged = {
        (bytes.fromhex(one["digest"]), one["round"], bytes.fromhex(one["id"]))
        for words in told
        for one in words.get("made", [])
    }
    ids = {(digest, number, report_id) for (digest, number), ((report_id, _),) in came.items()}
    assert acknowledged <= ids, "an answer was lost"
    sent = [wire.decode_report(bytes.fromhex(each)) for each in final["sent"]]
    assert {(each.digest, each.round, each.id) for each in sent} == ids
    lines = [independent_bound.Told(each.digest, each.round, each.symbol) for each in sent]
    least = independent_bound.largest_log_ratio([survey.canonical for survey in surveys], lines)
    assert least <= final["loss"] + 2 * independent_bound.ROUNDING
    assert final["loss"] <= final["committed"] <= BUDGET


def drained(site: page_devices.Site) -> list[dict[str, Any]]:
    found = []
    while not site.told.empty():
        found.append(site.told.get())
        assert "failed" not in found[-1], found[-1]
    return found


def test_no_acknowledged_answer_is_lost_when_the_browser_is_killed(tmp_path: Path) -> None:
    chance = random.Random(35)  # noqa: S311 - of a test
    told: list[dict[str, Any]] = []
    with page_devices.site(LONG) as site:
        begin = 0
        for _ in range(KILLS):
            with page_devices.browsing(tmp_path, site.url, **LIFE, **{"from": begin, "to": ROUNDS}):
                for _ in range(chance.randint(1, 12)):
                    told.append(site.told.get(timeout=60))
                    assert "failed" not in told[-1], told[-1]
                assert "done" not in told[-1], "it had nothing left to be killed at"
            told += drained(site)
            begin = max(0, told[-1]["round"] - 2)
        end = told[-1]["round"] + 3
        with page_devices.browsing(tmp_path, site.url, **LIFE, **{"from": begin, "to": end}):
            while not told[-1].get("done"):
                told.append(site.told.get(timeout=60))
                assert "failed" not in told[-1], told[-1]
    check_answers(LONG, site.reports(), told, told[-1])


def test_two_tabs_are_one_device(tmp_path: Path) -> None:
    words = {**LIFE, "from": 0, "to": TAB_ROUNDS, "pages": 2}
    with page_devices.site(LONG) as site, running_browser(tmp_path) as browser:
        for tab in ("one", "two"):
            browser.switch_to.new_window("window")
            browser.get(f"{site.url}/?" + "&".join(f"{k}={v}" for k, v in {**words, "name": tab}.items()))
        told, ends = [], []
        while len(ends) < 2:
            told.append(site.told.get(timeout=120))
            assert "failed" not in told[-1], told[-1]
            ends += [told[-1]] if told[-1].get("done") else []
    by = {
        tab: sum(len(each.get("made", [])) for each in told if each["name"] == tab) for tab in ("one", "two")
    }
    assert sum(by.values()) == 2 * TAB_ROUNDS
    assert min(by.values()) > 0, "one tab made all the answers"
    check_answers(LONG, site.reports(), told, ends[-1])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("profile")) as driver:
        driver.set_script_timeout(600 if LONG_FORM else 60)
        yield driver


def told_by(browser: Browser, url: str, script: str, *arguments: object) -> Any:
    """The result of a script in a page of the site, which has `opened`, and `now` as its agents' clock."""
    browser.get(url)
    return browser.execute_async_script(
        "const done = arguments[arguments.length - 1]; const given = [...arguments].slice(0, -1);"
        f"let now = {START_S + 1}; const clock = () => now;"
        "import('/test/page-device.js').then(async ({opened}) => {" + script + "})"
        ".then(done, (error) => done(`${error.reason ?? error} ${error.message}`));",
        *arguments,
    )


def test_a_survey_needs_the_owners_yes_and_room_in_the_budget(browser: Browser) -> None:
    durable = Survey.parse(LABELS.replace("self-rated-health", "durable"))
    unlike = changed(LABELS, ('"poor"', '"bad"'), ("self-rated-health", "unlike"))
    high = changed(LABELS, ("epsilon = 1.0", "epsilon = 3.0"), ("self-rated-health", "high"))
    dear = changed(LABELS, ("epsilon = 1.0", "epsilon = 1.9"), ("self-rated-health", "dear"))
    surveys = [changed(LABELS), durable, unlike, high, dear, changed(VISITS)]
    script = """
        const agent = await opened({budget: 4, policy: {maxEpsilon: 2}, clock});
        const words = async () =>
          Object.fromEntries((await agent.refresh()).map(({id, reason}) => [id, reason]));
        const said = [await words()];
        await agent.optIn('health');
        said.push(await words());
        await agent.leave('health');
        said.push(await words());
        return said;"""
    with page_devices.site(surveys) as site:
        asked, agreed, left = told_by(browser, site.url, script)
    always = {
        "durable": "wrong_ledger",
        "unlike": "domain_mismatch",
        "high": "over_policy",
        "outpatient-visits": "unknown_attribute",
    }
    assert asked == {**always, "self-rated-health": "not_opted_in", "dear": "not_opted_in"}
    assert agreed in (  # in the list's order: what came second does not fit
        {**always, "self-rated-health": None, "dear": "over_budget"},
        {**always, "self-rated-health": "over_budget", "dear": None},
    )
    assert left == {**always, "self-rated-health": "opted_out", "dear": "opted_out"}


def test_a_reload_keeps_values_answers_and_the_budget(browser: Browser) -> None:
    life = "const agent = await opened({budget: 6, clock}); await agent.refresh();"
    with page_devices.site([changed(LABELS), changed(AGE_BY_SEX)]) as site:
        first = (
            life
            + """
            await agent.set('age', 12); await agent.set('health', 'good');
            return (await agent.answer()).map(({survey}) => survey).sort();"""
        )
        assert told_by(browser, site.url, first) == ["age-by-sex", "self-rated-health"]
        later = (
            life
            + """
            const again = await agent.answer();
            now += 86400;
            return [again, await agent.answer(), await agent.upload(), await agent.account()];"""
        )
        again, made, upload, account = told_by(browser, site.url, later)
        refused = told_by(browser, site.url, "await opened({budget: 5, clock})")
        pinned = told_by(browser, site.url, life + "await agent.set('age', 13)")
    assert again == []
    assert [one["round"] for one in made] == [1, 1]
    assert (upload["settled"], upload["waiting"]) == (4, 0)
    table = {each.symbol for each in site.reports() if each.digest == changed(AGE_BY_SEX).digest}
    assert len(table) == 1, "a static answer was drawn anew"
    assert account["label"] == "per-site-data"
    assert 0 < account["loss"] <= account["committed"] <= 6
    assert refused.startswith("budget")
    assert pinned.startswith("pinned")


def test_what_is_left_or_forgotten_is_not_sent_and_stays_spent(browser: Browser) -> None:
    script = """
        const agent = await opened({budget: 4, clock});
        await agent.refresh(); await agent.set('health', 'good'); await agent.answer();
        const before = await agent.account();
        const [{digest}] = before.surveys;
        await agent.leave(digest);
        const left = await agent.upload();
        await agent.forget();
        const after = await agent.account();
        const [{reason}] = await agent.refresh();
        return {before, left, after, reason, again: await agent.answer()};"""
    with page_devices.site([changed(LABELS)]) as site:
        said = told_by(browser, site.url, script)
    assert site.bodies == []
    assert (said["left"]["waiting"], said["again"], said["reason"]) == (0, [], "opted_out")
    assert said["before"]["waiting"] == 1
    assert said["after"]["committed"] == pytest.approx(said["before"]["committed"], abs=1e-6)
    assert said["after"]["sent"] == []


def golden(name: str, *changes: tuple[str, str]) -> Survey:
    text = (GOLDEN / f"{name}.toml").read_text(encoding="utf-8").partition("[[category]]")[0]
    return changed(text, *changes)


def read_by_python(survey: Survey, *values: object) -> int:
    """The input that these values of its attributes are, of a transition those of then and now."""
    attributes = survey.attributes * (2 if survey.form.lag else 1)
    return channel_input(survey, [encode(*each) for each in zip(attributes, values, strict=True)])


def test_sets_scores_and_what_changed_are_answered_as_python_reads_the_values(browser: Browser) -> None:
    """Another symbol than the true one comes with probability 10^-6 in all, at these epsilons."""
    items = golden("sets", ("epsilon = 1.0", "epsilon = 30.0"), ("most = 3", "most = 2"))
    score = golden(
        "survey-score", ("epsilon = 1.0", "epsilon = 16.0"), ("intercept = 0.5", "intercept = 60.0")
    )
    some = golden("key-value", ("epsilon = 1.0", "epsilon = 30.0"))
    moved = golden(
        "survey-transition",
        *(("epsilon = 1.0", "epsilon = 30.0"), ("rotation = 12\n", ""), ("lag = 4", "lag = 1")),
        *(('asks = "changed"', 'asks = "pairs"'), ('"pbgrr"\nboost_epsilon = 0.5', '"grr"'), ("= 52", "= 4")),
    )
    surveys = {survey.digest: survey for survey in (items, score, some, moved)}
    declared = [
        {"id": each.id, "kind": each.kind, "type": each.to_spec()[2], "domain": each.to_spec()[3]}
        for survey in surveys.values()
        for each in survey.attributes
    ]
    life = """
        now += given[1] * 7 * 86400;
        const agent = await opened({budget: 300, attributes: given[0], clock});
        const kept = () => new Promise((next) => {
          indexedDB.open('hubbub:' + location.origin).onsuccess = ({target: {result}}) => {
            const row = result.transaction('attributes').objectStore('attributes').get('way');
            row.onsuccess = () => { result.close(); next(row.result.past.map(({value}) => value)); };
          };
        });
        const told = await agent.refresh();
        for (const [id, value] of Object.entries(given[2])) await agent.set(id, value);
        await agent.answer();
        await agent.upload();
        const past = await kept();
        if (given[1] === 2) await agent.leave(told.find(({id}) => id === 'way-to-work').digest);
        return [told.map(({reason}) => reason), past, await kept(), (await agent.account()).loss];"""
    first = {"apps": ["news", "mail"], "weight": 70, "age": 12, "minutes": "absent", "way": "car"}
    rounds = [first, {"way": "bus"}, {"way": "none"}]
    losses, reports = [], []
    with page_devices.site(list(surveys.values())) as site:
        for number, values in enumerate(rounds):
            told = told_by(browser, site.url, life, declared, number, values)
            assert isinstance(told, list), told
            reasons, past, after, loss = told
            assert number or reasons == [None] * 4
            assert past == [values["way"]] and after == (past if number < 2 else [])
            losses.append(loss)
        reports = site.reports()
    said = [(surveys[each.digest], each.round, each.symbol) for each in reports]
    assert [(survey.id, number) for survey, number, _ in said if survey is moved] == [
        (moved.id, 1),
        (moved.id, 2),
    ]
    ways = ("car", "bus", "none")
    for survey, number, symbol in said:
        if survey is items:
            held = int.from_bytes(symbol, "little")  # one cell, of the two that are held
            assert held in (1, 1 << items.attributes[0].domain.items.labels.index("news"))
        elif survey is moved:
            assert symbol == read_by_python(moved, *ways[number - 1 : number + 1])
        else:
            values = [first[each.id] for each in survey.attributes]
            likely = survey.channel.column(symbol)
            assert likely.argmax() == read_by_python(survey, *values)
    # What a filter reads of a set is rounded up: by 1e-6 at this epsilon.
    assert losses[0] <= sum(each.channel.epsilon for each in (items, score, some)) + 1e-6
    assert losses[0] >= items.channel.epsilon + score.channel.epsilon
    assert losses[2] - losses[0] == pytest.approx(2 * moved.channel.epsilon, abs=1e-9)


def test_signed_lists_are_heeded_and_no_older_one_after_them(browser: Browser) -> None:
    health, table = changed(LABELS), changed(AGE_BY_SEX)
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    public = key.public_key().public_bytes_raw().hex()
    stranger = Ed25519PrivateKey.from_private_bytes(bytes(31) + b"\1")

    def signed(sequence: int, surveys: list[Survey], cancelled: list[Survey], by: Any = key) -> bytes:
        listed = SurveyList(
            sequence,
            START_S,
            START_S + DAY_S,
            tuple(each.canonical for each in surveys),
            tuple(each.digest for each in cancelled),
        )
        return listed.signed(by)

    lists = [
        signed(3, [health, table], []),
        signed(4, [table], [health]),
        signed(3, [health, table], []),
        signed(5, [health], [], stranger),
    ]
    script = """
        const agent = await opened({budget: 6, clock, surveyKeys: [given[0]]});
        const [said] = [[]];
        for (let i = 0; i < given[1]; i++) {
          await fetch('/told', {method: 'POST', body: JSON.stringify({list: i})});
          try { said.push((await agent.refresh()).map(({id}) => id).sort().join()); }
          catch (error) { said.push(error.reason); }
          if (i === 0) await agent.answer();
        }
        now += 2 * 86400;
        await fetch('/told', {method: 'POST', body: JSON.stringify({list: 1})});
        try { await agent.refresh(); } catch (error) { said.push(error.reason); }
        return [said, await agent.account()];"""
    with page_devices.site([]) as site:
        site.lists = lists
        said, account = told_by(browser, site.url, script, public, len(lists))
    assert said == ["age-by-sex,self-rated-health", "age-by-sex", "rolled_back", "wrong_signature", "expired"]
    assert {each["id"]: each["state"] for each in account["surveys"]} == {
        "self-rated-health": "cancelled",
        "age-by-sex": "active",
    }
    assert account["waiting"] == 1, "a report of the cancelled survey was not withdrawn"


def test_of_two_that_decided_on_the_same_ledger_one_writes_and_nothing_of_the_other(browser: Browser) -> None:
    """The counter by itself: no lock is asked for."""
    script = """
        const {Ledger} = await import('/src/agent/ledger.js');
        const [one, other] = await Promise.all([0, 1].map(() => Ledger.open('beside', 4)));
        const written = await Promise.all([one, other].map((ledger, i) =>
          ledger.commit([['outbox', 1, {name: i}], ['answers', `answer ${i}`, {}]])));
        await other.load();
        const [{name}] = other.tables.outbox.values();
        const after = await other.commit([['outbox', 1], ['outbox', 2, {name: 9}]]);
        await one.load();
        const keys = [...one.tables.outbox.keys(), ...one.tables.answers.keys()];
        return [written, name, after, keys, one.counter];"""
    with page_devices.site([]) as site:
        written, name, after, keys, counter = told_by(browser, site.url, script)
    assert sorted(written) == [False, True]
    winner = written.index(True)
    assert (name, after, keys, counter) == (winner, True, [2, f"answer {winner}"], 2)


def test_a_frame_of_another_page_is_no_device_unless_its_host_says_so(browser: Browser) -> None:
    script = """
        const frame = document.createElement('iframe');
        const heard = new Promise((done) => addEventListener('message', ({data}) => done(data)));
        frame.srcdoc = `<script type="module">
          import {opened} from '/test/page-device.js';
          const tried = async (more) =>
            opened({budget: 4, ...more}).then(({label}) => label, ({reason}) => reason);
          parent.postMessage([await tried({}), await tried({ephemeral: true})], '*');
        </` + `script>`;
        document.body.append(frame);
        return heard;"""
    with page_devices.site([]) as site:
        assert told_by(browser, site.url, script) == ["framed", "per-site-data"]


def test_devices_in_pages_answer_a_node_up_to_a_sealed_and_verified_release(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terms = {"planned_devices": str(CROWD), "minimum_cohort": str(CROWD)}
    survey = changed(
        LABELS,
        ("minimum_cohort = 100", f"minimum_cohort = {terms['minimum_cohort']}"),
        ("planned_devices = 5000", f"planned_devices = {terms['planned_devices']}"),
    )
    script = "return (await import('/test/page-device.js')).crowd(given[0]);"
    with page_devices.site([]) as site, World(tmp_path, [survey]) as world:
        asked = {"node": world.url, "devices": CROWD, "start": START_S}
        with world.living():
            unlisted = told_by(browser, site.url, script, asked)
        assert unlisted.startswith("collector"), unlisted
        with world.living(origins=f"https://page.example,{site.url}"):
            assert told_by(browser, site.url, script, asked) == {"accepted": CROWD, "failures": []}
            world.turn(in_round(1))
            wait_until(lambda: world.sealed_rounds() == 1)
            (shown,) = world.document()["surveys"]
            assert shown["rounds"][0]["accepted"] == CROWD
            assert main(["verify", world.url]) == 0
    assert "0 differ" in capsys.readouterr().out


def test_a_text_is_looked_up_in_the_file_that_a_survey_names(browser: Browser) -> None:
    """Another bucket than the true one comes with probability 10^-5 at this epsilon; inputs pass 2^17."""
    texts = ["caf\u00e9", *(f"site-{i}" for i in range(140_000))]
    data, order = dictionary_of(texts)
    keys = f'type = "dictionary"\ntexts = {len(texts)}\ndigest = "{hashlib.sha256(data).hexdigest()}"'
    survey = changed(
        LABELS,
        ('type = "label"\nlabels = ["excellent", "good", "fair", "poor"]', keys),
        ('"health"', '"site"'),
        ('"grr"', '"local_hashing"'),
        ("epsilon = 1.0", "epsilon = 20.0"),
        ("evolving", "static"),
    )
    life = """
        const {Dictionary} = await import('/src/agent/dictionary.js');
        const [url, texts, digest, text] = given;
        const sites = new Dictionary(url, texts, digest);
        const site = {id: 'site', kind: 'static', type: 'dictionary', domain: sites.domain};
        const agent = await opened({budget: 21, attributes: [site], clock});
        const [{reason}] = await agent.refresh();
        const raw = await agent.set('site', 'site-1').catch((error) => error.message);
        if (text !== null) await agent.set('site', await sites.placeOf(text));
        await agent.answer();
        return [reason, raw, (await agent.upload()).settled, (await agent.account()).loss];"""
    given = (len(texts), hashlib.sha256(data).hexdigest())
    with page_devices.site([survey]) as site:
        site.files |= {"/sites.bin": data, "/other.bin": data[:-8] + bytes(8), "/long.bin": data + bytes(8)}
        wrong = [
            told_by(browser, site.url, life, f"/{name}.bin", *given, "mail") for name in ("other", "long")
        ]
        gone = told_by(browser, site.url, life, "/nowhere.bin", *given, "mail")
        told = told_by(browser, site.url, life, "/sites.bin", *given, "cafe\u0301")
        later = told_by(browser, site.url, life, "/nowhere.bin", *given, None)  # it is memoised
    assert wrong[0].startswith(f"dictionary /other.bin: a dictionary must have digest {given[1]}, got ")
    assert "at most" in wrong[1] and gone == "dictionary the dictionary at /nowhere.bin cannot be fetched"
    assert told[:3] == [None, "a text, no place", 1]
    assert told[3] == later[3] == pytest.approx(survey.channel.epsilon, abs=1e-9) and later[2] == 0
    (report,) = site.reports()
    seed, bucket = divmod(report.symbol, survey.channel.pool.buckets)
    assert survey.channel.pool.bucket(seed, order.index("caf\u00e9")) == bucket
