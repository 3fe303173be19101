"""Parts of the page by themselves, in a real browser: what no snapshot of a few rounds would show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browser import Browser
from page_site import A, B, Site, on, opened, state, text, until
from selenium.webdriver.common.by import By
from shown_view import round_of, snapshot_of, survey_of


def asked(browser: Browser, script: str, *words: object) -> Any:
    """Return what a script of the page's modules says to `done`."""
    return browser.execute_async_script(
        f"""const [...words] = arguments, done = words.pop(), page = (name) => import(`/page/${{name}}.js`);
        (async () => {{ {script} }})().then(done, (e) => done(String(e)));""",
        *words,
    )


@pytest.fixture
def blank(browser: Browser, open_site: Callable[[dict[str, Any]], Site]) -> Browser:
    opened(browser, open_site(snapshot_of()))
    return browser


def test_a_history_is_asked_for_anew_when_the_list_of_rounds_is_full(blank: Browser) -> None:
    """The live document lists the newest hundred: then their number says nothing of a new one."""
    keys = asked(
        blank,
        """const { History } = await page("history");
        const cell = { label: "a", estimate: 0.5, low: 0.4, high: 0.6 };
        const history = new History(() => {}), keys = [];
        for (const first of [1, 2]) {
          const rounds = [...Array(100).keys()]
            .map((i) => ({ round: first + i, sealed: true, suppressed: false }));
          history.update({
            survey: { digest: "d", rounds, rounds_omitted: first - 1 }, round: { round: 1, values: [cell] },
            route: {}, rounds: { get: () => null },
            answers: { get: (_, key) => { keys.push(key); return null; } },
          });
        }
        return keys;""",
    )
    assert len(set(keys)) == 2


def test_a_median_keeps_all_digits_of_its_point(blank: Browser) -> None:
    said = asked(
        blank,
        """const { Facts } = await page("facts"), facts = new Facts();
        const at = (share) => ({ share, estimate: 1234567, low: -0.1 - 0.2, high: 2e6 });
        facts.update({ epsilon: {}, rounds: [] },
          { epsilon: {}, accounting: {}, devices: 9, quantiles: [0.25, 0.5, 0.75].map(at) });
        return facts.median.main.textContent;""",
    )
    assert said == "1234567 (−0.3 to 2000000)"


def test_the_page_keeps_a_bounded_number_of_answers(blank: Browser) -> None:
    """A page on a wall for a year takes thousands of rounds: the newest looked at are kept."""
    kept, first, last = asked(
        blank,
        """const { Answers } = await page("answers");
        const address = (i) => `api/live?look=${i}`;
        let came = 0;
        const answers = await new Promise((done) => {
          const all = new Answers(() => {
            came += 1;
            all.get(address(0), "k");
            if (came < 140) all.get(address(came), "k");
            else done(all);
          });
          all.get(address(0), "k");
        });
        return [answers.known.size, answers.known.has(address(0)), answers.known.has(address(139))];""",
    )
    assert kept <= 128
    assert first and last  # what is looked at again stays


def test_what_troubles_the_server_is_said_once(browser: Browser, open_site: Callable[..., Site]) -> None:
    snapshot = snapshot_of(survey_of("health", round_of(), digest=A)) | {"unsealed": "the clock must not run"}
    opened(browser, open_site(snapshot), "?page=operations")
    until(browser, "No round is sealed: the clock must not run.", lambda: text(browser, "#trouble"))
    assert browser.find_element(By.TAG_NAME, "body").text.count("No round is sealed") == 1


def test_cards_stand_in_the_order_of_the_list(browser: Browser, open_site: Callable[..., Site]) -> None:
    one, two = (survey_of(name, round_of(), digest=digest) for name, digest in (("one", A), ("two", B)))
    site = open_site(snapshot_of(two))
    opened(browser, site)

    def cards() -> list[str]:
        return [str(each.get_attribute("id"))[-32:] for each in browser.find_elements(By.CLASS_NAME, "brief")]

    until(browser, [B], cards)
    site.view.publish(snapshot_of(one, two))
    until(browser, [A, B], cards)


def test_a_page_that_nobody_sees_has_no_stream(browser: Browser, open_site: Callable[..., Site]) -> None:
    """A browser opens six connections to one server: streams of hidden tabs would starve the seventh."""
    site = open_site(snapshot_of(survey_of("health", round_of(), digest=A, title="Health")))
    browser.minimize_window()
    try:
        browser.get(site.url + on(A))
        assert browser.execute_script("return document.hidden")
        until(browser, "Health · round 1 · Hubbub", lambda: browser.title)
        browser.execute_script("dispatchEvent(new Event('online'))")
        until(browser, "polling", lambda: state(browser))
        names = "return performance.getEntriesByType('resource').map((each) => each.name)"
        assert not any("/api/events" in name for name in browser.execute_script(names))
    finally:
        browser.set_window_rect(0, 0, 1280, 900)
    until(browser, False, lambda: browser.execute_script("return document.hidden"))
    until(browser, "live", lambda: state(browser))
