"""Makes agents and kills them: `python agent_nursery.py LEDGER URL BUDGET SURVEY...`, then one JSON line per
life.

Every life is a fork of this process (which never has a ledger open), so that a life costs milliseconds and
not an interpreter's start. A life enrols, answers and uploads round after round until it is killed:

    {"after": "fork" | "open", "delay_s": 0.01}     by this process, so long after that point
    {"statement": 17}                               by itself, before its 17th SQL statement
    {"drain": true}                                 not at all: it answers nothing, uploads what waits, and
    exits

"premature": true in a line makes the agent a broken one that sends an answer before it is in the ledger.
Each line is answered by the exit code: -9 for killed.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
import traceback
from pathlib import Path

from hubbub.survey.survey import Survey
from hubbub.wire.report import encode_upload
from hubbub_client import Agent, Limits, Policy

LIMITS = Limits(gap_s=0.0, base_s=0.001, cap_s=0.01, retry_after_cap_s=0.01)
STATIC = {"age": 13, "sex": "f"}
AGREED = Policy(require_opt_in="no")


def live(order: dict, world: tuple[str, str, float, list[Survey]], opened: int) -> None:
    path, url, budget, surveys = world
    if "statement" in order:
        die_before_statement(order["statement"])
    now_s = 0.0
    agent = Agent(path, url, budget=budget, limits=LIMITS, clock=lambda: now_s, policy=AGREED)
    if order.get("premature"):
        send_before_commit(agent)
    for attribute in (attribute for survey in surveys for attribute in survey.attributes):
        agent.register(attribute)
    now_s = surveys[0].start_s
    for survey in surveys:
        assert agent.enrol(survey).accepted
    os.write(opened, b"!")
    upload = agent.upload
    if order.get("drain"):
        while upload().waiting:
            now_s += 0.01
            time.sleep(0.002)
        agent.close()
        return
    first = 1 + min(status.high_water for status in agent.status().enrolments)
    for number in range(first, surveys[0].rounds):
        now_s = surveys[0].round_start_s(number)
        for attribute in (attribute for survey in surveys for attribute in survey.attributes):
            # What a host would set; out of the domain now and then.
            agent.set(attribute.id, STATIC.get(attribute.id, number % 5))
        agent.answer()
        upload()
    raise RuntimeError("the schedule is too short for this many lives")


def die_before_statement(number: int) -> None:
    """Every SQL statement from the first on, those of opening the ledger included, counts."""
    left = number
    connect = sqlite3.connect

    def count(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(*arguments: object, **settings: object) -> sqlite3.Connection:
        connection = connect(*arguments, **settings)
        connection.set_trace_callback(count)
        return connection

    sqlite3.connect = traced


def send_before_commit(agent: Agent) -> None:
    """The mistake that the ledger exists to prevent."""
    add_answer = agent._ledger.add_answer

    def premature(**answer: object) -> None:
        agent._http.post("/v1/reports", encode_upload([answer["report"]]))
        add_answer(**answer)

    agent._ledger.add_answer = premature


def one_life(order: dict, world: tuple[str, str, float, list[Survey]]) -> int:
    ready, opened = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ready)
        try:
            live(order, world, opened)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    os.close(opened)
    if "delay_s" in order:
        if order["after"] == "open":
            os.read(ready, 1)  # returns at once if the child is gone
        time.sleep(order["delay_s"])
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(ready)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    path, url, budget = sys.argv[1], sys.argv[2], float(sys.argv[3])
    surveys = [Survey.from_canonical(Path(name).read_bytes()) for name in sys.argv[4:]]
    for line in sys.stdin:
        print(one_life(json.loads(line), (path, url, budget, surveys)), flush=True)


if __name__ == "__main__":
    main()
