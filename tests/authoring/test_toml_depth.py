"""The depth of a file is bounded by the reader, and not by the process that runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from hubbub.errors import SurveyError
from hubbub_authoring.files import decode


@pytest.fixture(params=[sys.getrecursionlimit(), 20_000])
def limit(request: pytest.FixtureRequest) -> Iterator[int]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(request.param)
    yield request.param
    sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 3_000 + "]" * 3_000, "a = " + "{b = " * 3_000 + "1" + "}" * 3_000]
)
def test_deep_text_is_refused_whatever_the_process_allows(text: str, limit: int) -> None:
    with pytest.raises(SurveyError, match="must be TOML of modest depth"):
        decode(text, "deep.toml")


def test_modest_depth_is_read(limit: int) -> None:
    assert decode("a = " + "[" * 99 + "]" * 99, "modest.toml")
