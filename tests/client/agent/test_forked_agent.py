"""An agent whose process forks: the child is told so at once, whatever its parent's threads were holding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

HEAD = '''
import asyncio, os, signal, sys, threading
from pathlib import Path
from devices import FAST_SETUP, HEALTH, HEALTH_SURVEY, Clock, Collector
from surveys import START_S
from hubbub_client import Agent, AsyncAgent, LedgerLockedError

FOLDER, CLOCK, COLLECTOR = Path(sys.argv[1]), Clock(START_S + 5), Collector()

def opened(cls, http=COLLECTOR, url="http://c.invalid"):
    return cls(FOLDER / "l.db", url, budget=9.0, clock=CLOCK, http=http, **FAST_SETUP)

def forked(act):
    """What came of it in a child, which has ten seconds."""
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            act()
        except LedgerLockedError as error:
            assert "not to its fork" in str(error)
            os._exit(1)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(2)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFEXITED(status), "the child waited for ever"
    return {0: "done", 1: "told"}[os.WEXITSTATUS(status)]

def hold(lock, then):
    held, free = threading.Event(), threading.Event()
    def work():
        with lock:
            held.set()
            assert free.wait(30)
    holder = threading.Thread(target=work)
    holder.start()
    assert held.wait(30)
    then()
    free.set()
    holder.join()
'''


def run(body: str, folder: Path) -> None:
    """A process of its own: this one must not fork while tests before may have left threads."""
    path = os.pathsep.join([str(Path(__file__).parents[2] / "harness"), *(p for p in sys.path if p)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HEAD + body, folder],
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_a_child_is_told_although_a_thread_of_its_parent_held_the_agent(tmp_path: Path) -> None:
    run(
        """
agent = opened(Agent)
agent.register(HEALTH), agent.enrol(HEALTH_SURVEY)
agent.run_background(poll_s=3600.0), agent.serve_page()
verbs = [agent.status, agent.account, agent.answer, agent.upload, agent.pause, agent.forget, agent.surveys,
         agent.fetch_surveys, agent.run_background, agent.serve_page, lambda: agent.set("health", "good")]
def every():
    assert [forked(verb) for verb in verbs] == ["told"] * len(verbs)
    assert forked(agent.close) == "done"
hold(agent._lock, every)
every()
agent.set("health", "good"), agent.answer(), agent.upload()
assert len(COLLECTOR.received) == 1 and agent.status().waiting == 0
agent.close()
""",
        tmp_path,
    )


def test_a_child_never_awaits_a_thread_that_it_has_not_got(tmp_path: Path) -> None:
    run(
        """
async def begin(agent):
    await agent.open()
    await agent.register(HEALTH), await agent.enrol(HEALTH_SURVEY), await agent.upload()
async def leave(agent):
    async with agent:
        pass
agent = opened(AsyncAgent)
asyncio.run(begin(agent))
def every():
    for verb in (agent.status, agent.answer, agent.upload, agent.fetch_surveys, agent.open):
        assert forked(lambda: asyncio.run(verb())) == "told", verb
    assert forked(lambda: asyncio.run(agent.close())) == "done"
hold(agent._agent._lock, every)
asyncio.run(agent.answer()), asyncio.run(agent.upload())
assert len(COLLECTOR.received) == 1
asyncio.run(agent.close())
before = opened(AsyncAgent)  # made before the fork, opened after it: that is the child's own
assert forked(lambda: asyncio.run(leave(before))) == "done"
""",
        tmp_path,
    )


def test_a_child_that_closes_does_not_cut_off_what_its_parent_is_sending(tmp_path: Path) -> None:
    run(
        """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from hubbub.wire import report as wire
asked, let_go = threading.Event(), threading.Event()
class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked.set()
        assert let_go.wait(30)
        reply = wire.encode_response(["accepted"] * len(wire.decode_upload(body, max_reports=9)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
agent = opened(Agent, None, f"http://127.0.0.1:{server.server_port}")
agent.register(HEALTH), agent.enrol(HEALTH_SURVEY), agent.answer()
found = []
upload = threading.Thread(target=lambda: found.append(agent.upload()))
upload.start()
assert asked.wait(30)
assert forked(agent.close) == "done"
let_go.set()
upload.join()
assert list(found[0].settled.values()) == ["accepted"] and found[0].failure is None
agent.close()
""",
        tmp_path,
    )
