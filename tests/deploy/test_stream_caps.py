"""The caps on streams of changes, from the command line to the server."""

from __future__ import annotations

import argparse
import contextlib
import urllib.error
import urllib.request

import pytest
from command import node
from surveys import LABELS

from hubbub_aggregator.web import StreamCaps
from hubbub_deploy.commands.arguments import add_streams, stream_caps


def parsed(*words: str) -> StreamCaps:
    parser = argparse.ArgumentParser()
    add_streams(parser)
    return stream_caps(parser.parse_args(words))


def test_the_caps_are_options_with_the_usual_ones_as_defaults() -> None:
    assert parsed() == StreamCaps(256, 32)
    assert parsed("--streams", "600", "--client-streams", "500") == StreamCaps(600, 500)


def test_a_cap_of_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--streams", "0")
    assert "--streams" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"streams \(client\) must be at least 1, got 0"):
        StreamCaps(5, 0)


@pytest.mark.integration
def test_a_node_gives_as_many_streams_as_it_was_told(tmp_path) -> None:
    path = tmp_path / "health.toml"
    path.write_text(LABELS, encoding="utf-8")
    options = ("--streams", 9, "--client-streams", 2)
    with node(tmp_path / "data", path, options=options) as (_, port), contextlib.ExitStack() as held:
        url = f"http://127.0.0.1:{port}/api/events"
        for _ in range(2):
            assert held.enter_context(urllib.request.urlopen(url, timeout=10)).status == 200
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, timeout=10)
        assert refused.value.code == 503
        assert b"must stay below 2" in refused.value.read()
