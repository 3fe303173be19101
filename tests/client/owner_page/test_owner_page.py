"""The owner's page: for whoever is on this machine and knows the token, and for no other page."""

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from devices import HEALTH_SURVEY, VISITS_SURVEY, Clock, Collector, changed, opener
from surveys import LABELS, START_S

from hubbub_client import Agent, LedgerError, OwnerPage
from hubbub_client.ledger.ledger import Ledger


@pytest.fixture
def agent(tmp_path: Path, collector: Collector) -> Iterator[Agent]:
    with opener(tmp_path, Clock(START_S + 10), collector) as make:
        made = make()
        made.set("health", "good")
        assert made.enrol(HEALTH_SURVEY).accepted
        yield made


class Browser:
    """Asks as a browser would, and as one that was lied to."""

    def __init__(self, page: OwnerPage) -> None:
        parts = urlsplit(page.url)
        self.host, self.path = parts.netloc, parts.path

    def ask(
        self, method: str, name: str = "", body: str = "", *, path: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        try:
            sent = {"Host": self.host, "Content-Type": "application/x-www-form-urlencoded"}
            if method == "POST":
                sent["Origin"] = f"http://{self.host}"
            sent |= {key.title(): value for key, value in headers.items()}
            sent = {key: value for key, value in sent.items() if value != "-"}
            connection.request(method, self.path + name if path is None else path, body or None, sent)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read().decode()
        finally:
            connection.close()


@pytest.fixture
def browser(agent: Agent) -> Browser:
    return Browser(agent.serve_page())


def test_bytes_are_shown_after_sending_and_not_before(agent, browser, collector) -> None:
    agent.answer()
    before = browser.ask("GET")[2]
    assert "1 answer waits" in before and "The exact bytes" not in before
    waiting = agent._ledger.outbox(1)[0]
    assert waiting.id.hex() not in before
    agent.upload()
    after = browser.ask("GET")[2]
    assert "The exact bytes (1)" in after and waiting.id.hex() in after
    assert waiting.data.hex() in after.replace(" ", "")
    assert "likeliest from" in after and "1 answer waits" not in after


def test_the_buttons_do_what_they_say(agent, browser) -> None:
    agent.answer()
    agent.upload()
    assert browser.ask("POST", "pause")[0] == 303
    assert agent.status().paused and "Paused" in browser.ask("GET")[2]
    assert browser.ask("POST", "resume")[0] == 303
    assert not agent.status().paused
    spent = agent.account().budget - agent.account().left
    assert browser.ask("POST", "opt-out", f"survey={HEALTH_SURVEY.digest.hex()}")[0] == 303
    assert agent.account().surveys[0].state == "left"
    assert agent.enrol(HEALTH_SURVEY).reason == "opted_out"
    assert browser.ask("POST", "forget")[0] == 404  # not without the box ticked
    assert agent.status().answers == 1
    assert browser.ask("POST", "forget", "sure=yes")[0] == 303
    account = agent.account()
    assert (agent.status().answers, account.budget - account.left) == (0, spent)


def test_only_this_machine_is_listened_to(agent, browser) -> None:
    assert agent._page._server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "evil.example:{port}", ""])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_host_name_is_refused(agent, browser, host: str, method: str) -> None:
    """A foreign page whose name was pointed at this machine gets nothing, not even the page."""
    named = host.format(port=browser.host.split(":")[1])
    status, _, body = browser.ask(method, "pause" if method == "POST" else "", host=named)
    assert status == 421 and "learned" not in body
    assert not agent.status().paused


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "-", "https://{host}", "http://{host}.evil"]
)
def test_a_form_from_elsewhere_is_refused(agent, browser, origin: str) -> None:
    assert browser.ask("POST", "pause", origin=origin.format(host=browser.host))[0] == 403
    assert not agent.status().paused


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["Origin: http://{host}", "Origin: http://evil.example", "Content-Length: 0"], 403),
        (["Origin: http://{host}", "Content-Length: 0000000009999999"], 413),
        (["Origin: http://{host}", "Transfer-Encoding: chunked"], 413),
    ],
)
def test_a_form_says_once_and_plainly_where_it_is_from_and_how_long(agent, browser, headers, status) -> None:
    lines = [f"POST {browser.path}pause HTTP/1.1", "Host: {host}", *headers, "", ""]
    name, _, port = browser.host.partition(":")
    with socket.create_connection((name, int(port)), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).format(host=browser.host).encode())
        assert connection.recv(64).split()[1] == str(status).encode()
    assert not agent.status().paused


def test_nothing_is_served_without_the_token(agent, browser) -> None:
    wrong = browser.path[:-2] + ("A" if browser.path[-2] != "A" else "B") + "/"
    for path in (
        "/",
        "/page.css",
        "/favicon.ico",
        wrong,
        wrong + "page.css",
        "/%C3%BC/",
    ):
        status, _, body = browser.ask("GET", path=path)
        assert status == 404 and browser.path.strip("/") not in body
        assert browser.ask("POST", path=path + "pause")[0] == 404
    assert not agent.status().paused
    assert len(browser.path) > 40


def test_every_answer_forbids_scripts_and_whatever_is_from_elsewhere(agent, browser) -> None:
    for method, name in (("GET", ""), ("GET", "page.css"), ("GET", "nothing"), ("POST", "pause")):
        headers = browser.ask(method, name)[1]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; ") and "script" not in policy
        assert "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert not any(word in headers.get("Server", "") for word in ("Python", "3."))
    page = browser.ask("GET")[2]
    assert "<script" not in page and "http" not in page and "style=" not in page
    assert browser.ask("GET", "page.css")[1]["Content-Type"] == "text/css; charset=utf-8"


def test_text_of_surveys_is_escaped(agent, browser) -> None:
    evil = "<script>x</script><img src=y>"
    agent.enrol(changed(LABELS, title=f"'{evil}'", version="2"))
    agent.opt_out(third := changed(LABELS, title=f"'{evil}'", version="3"))
    agent.enrol(third)
    page = browser.ask("GET")[2]
    assert page.count("&lt;script&gt;x&lt;/script&gt;") == 2
    assert "<script" not in page and "<img" not in page


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("opt-out", "survey=00", 404),
        ("opt-out", "", 404),
        ("answer", "", 404),
        ("pause", "x" * 5000, 413),
        ("", "", 404),
    ],
)
def test_what_is_no_button_does_nothing(agent, browser, name: str, body: str, status: int) -> None:
    before = agent.status()
    assert browser.ask("POST", name, body)[0] == status
    assert agent.status() == before


def test_other_methods_are_refused(browser) -> None:
    assert browser.ask("PUT", "pause")[0] == 501
    assert browser.ask("OPTIONS")[0] == 501


def test_no_value_is_on_the_page(agent, browser) -> None:
    agent.register(VISITS_SURVEY.attribute)
    agent.enrol(VISITS_SURVEY)
    agent.set("health", "excellent")
    agent.answer()
    assert "excellent" not in browser.ask("GET")[2]


def test_a_ledger_that_is_in_use_is_said_and_the_page_goes_on(agent, tmp_path) -> None:
    def opened() -> Agent:
        return Agent(tmp_path / "ledger.db", "", budget=None, http=Collector())

    page = OwnerPage(opened)
    browser = Browser(page)
    try:
        status, _, body = browser.ask("GET")
        assert status == 503 and "The app is using this ledger" in body
        agent.close()
        assert browser.ask("GET")[0] == 200
        Ledger(tmp_path / "ledger.db", budget=None).close()  # it is not held between two requests
        (tmp_path / "ledger.db").write_bytes(b"")
        status, _, body = browser.ask("GET")
        assert status == 503 and "its budget is not renewed" in body
    finally:
        page.close()


def test_the_page_ends_with_its_agent(agent) -> None:
    page = agent.serve_page()
    assert agent.serve_page() is page
    agent.close()
    page.close()
    with pytest.raises(ConnectionRefusedError):
        Browser(page).ask("GET")


def test_a_closed_ledger_has_no_page(agent) -> None:
    agent.close()
    with pytest.raises(LedgerError):
        agent.serve_page()
