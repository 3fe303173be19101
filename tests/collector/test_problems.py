"""Refusals of the gateway: problems (RFC 9457) of every kind, failures included."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from surveys import VISITS

from hubbub import Survey
from hubbub_collector.gateway import create_app
from hubbub_topic import SqliteLog


def test_a_failure_is_a_problem_without_its_own_words(tmp_path: Path) -> None:
    sent: list[dict[str, Any]] = []

    def broken() -> str:
        raise RuntimeError("what no reader should see")

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/healthz", "query_string": b"", "headers": []}
    log = SqliteLog(tmp_path / "log.sqlite", partitions=2)
    try:
        app = create_app(log, [Survey.parse(VISITS)], unsealed=broken)
        with pytest.raises(RuntimeError):  # the server's log says what happened
            asyncio.run(app(scope, receive, send))
    finally:
        log.close()
    start, body = sent
    assert (start["status"], dict(start["headers"])[b"content-type"]) == (500, b"application/problem+json")
    found = json.loads(body["body"])
    assert found["status"] == 500
    assert found["detail"] == "the server failed; its log says why"
