"""The web origins whose pages may be devices here, and what an answer to one of them says beside the rest.

An upload out of a browser is refused, whatever page it is of, unless its origin is listed: a website could
make the browsers of its visitors send reports. Content types would not tell, for a page may omit them; nor
would a comparison with the Host, which a page whose name resolves to this server shares.
"""

from __future__ import annotations

import re
from typing import Final

from hubbub_collector.body import CLOSE, Headers, Refusal
from hubbub_collector.errors import SettingsError

# Headers that browsers put on every upload which a page makes, and that no page can take off.
_OF_BROWSERS: Final = frozenset({b"origin", b"sec-fetch-site"})
# As browsers write one: nothing after the host but a port; no user, path or star.
_ORIGIN: Final = re.compile(r"https?://[a-z0-9.\-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:.]+\](:[0-9]{1,5})?")
_PREFLIGHT: Final[Headers] = (
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"content-type, padding"),
    (b"access-control-max-age", b"86400"),
)
_EXPOSED: Final = (b"access-control-expose-headers", b"retry-after")
VARY: Final = (b"vary", b"Origin")


def origins(text: str) -> frozenset[bytes]:
    """Return the origins of a list with commas.

    Raises:
        SettingsError: If one is no exact origin.
    """
    found = [each.strip() for each in str(text).split(",")] if text != "" else []
    for each in found:
        if _ORIGIN.fullmatch(each) is None:
            raise SettingsError(
                f"allowed_origins must be exact, such as https://www.example.org, with commas, got {each!r}"
            )
    return frozenset(each.encode() for each in found)


class Origins:
    """The origins that are listed; without any, no page is a device.

    Args:
        text: The list, with commas.
    """

    def __init__(self, text: str) -> None:
        self._answers = {
            each: ((b"access-control-allow-origin", each), _EXPOSED, VARY) for each in origins(text)
        }

    def __bool__(self) -> bool:
        return bool(self._answers)

    def answer(self, headers: Headers) -> Headers:
        """Return what an answer to a request says for its page: nothing for a device.

        Raises:
            Refusal: If a browser sends it for a page whose origin is not listed.
        """
        named = [(name, value) for name, value in headers if name in _OF_BROWSERS]
        if not named:
            return ()
        came = [value for name, value in named if name == b"origin"]
        found = self._answers.get(came[0]) if len(came) == 1 else None
        if found is None:
            text = "an upload must come from a device, not from a page in a browser, got header "
            raise Refusal(403, text + named[0][0].decode("latin-1"), CLOSE)
        return found

    def reading(self, headers: Headers) -> Headers:
        """Return what an answer that anybody may read says for the page that asked."""
        came = [value for name, value in headers if name == b"origin"]
        listed = self._answers.get(came[0]) if len(came) == 1 else None
        return listed or ((VARY,) if self else ())

    def preflight(self, headers: Headers) -> Headers:
        """Return the headers of the answer to a page that asks whether it may upload.

        Raises:
            Refusal: If its origin is not listed.
        """
        return (*self.answer(headers), *_PREFLIGHT)
