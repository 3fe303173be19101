"""The owner's page: served to this machine alone, at an address that nobody can guess, with no script in it.

It is a few forms around `Account`. Whoever asks must be on this machine, know the token in the path,
and name this very server: a foreign page whose name was pointed at 127.0.0.1 names another host, and one
that sends a form from elsewhere names another origin. Every answer of the server forbids scripts, frames,
and whatever comes from anywhere else.
"""

from __future__ import annotations

import hmac
import secrets
import socketserver
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from typing import Final, Protocol, TypeAlias
from urllib.parse import parse_qs

from hubbub.survey import Survey
from hubbub_client.errors import LedgerError, LedgerLockedError
from hubbub_client.owner_page.account import Account
from hubbub_client.owner_page.html import document, message

HOST: Final = "127.0.0.1"

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    # Not "no-referrer": a form would then be sent with the origin "null", and be refused.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

_MAX_FORM_BYTES: Final = 4096
_Answer: TypeAlias = tuple[HTTPStatus, bytes]

_TIMEOUT_S: Final = 10.0
"""The seconds that a request may take between two reads: it comes from this machine."""


class Owned(Protocol):
    """The methods of an agent that the page needs."""

    def account(self) -> Account:
        """See `Agent`."""

    def pause(self) -> None:
        """See `Agent`."""

    def resume(self) -> None:
        """See `Agent`."""

    def opt_out(self, asked: Survey | str) -> None:
        """See `Agent`."""

    def forget(self) -> None:
        """See `Agent`."""


class OwnerPage:
    """The owner's page of one ledger, served by a daemon thread until `close`.

    Args:
        opened: Return a context with the agent for one request: the one that a host runs, or one opened just
            for it.
        port: Where to listen on 127.0.0.1; 0 for any free port.

    Attributes:
        url: Where the page is. Whoever knows it may read and press what the owner may.

    Raises:
        OSError: The port is taken.
    """

    def __init__(self, opened: Callable[[], AbstractContextManager[Owned]], *, port: int = 0) -> None:
        self._server = _PageServer(opened, port)
        self.url = f"http://{self._server.host}/{self._server.token}/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="hubbub-page", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving; a second call does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _PageServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, opened: Callable[[], AbstractContextManager[Owned]], port: int) -> None:
        self.opened = opened
        self.one_at_a_time = threading.Lock()
        self.token = secrets.token_urlsafe(32)
        super().__init__((HOST, port), _Handler)
        self.host = f"{HOST}:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        """Say nothing: a browser that hangs up is no news, and a trace may quote what was asked."""


class _Handler(BaseHTTPRequestHandler):
    server: _PageServer
    timeout = _TIMEOUT_S
    server_version, sys_version = "hubbub", ""

    def do_GET(self) -> None:
        """Show the page, or its style."""
        name = self._name()
        if name == "":
            self._on_agent(lambda agent: (HTTPStatus.OK, document(agent.account())))
        elif name == "page.css":
            style = files(__package__).joinpath("page.css").read_bytes()
            self._answer((HTTPStatus.OK, style), kind="text/css")
        elif name is not None:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Do what the owner pressed."""
        name = self._name()
        if name is None:
            return
        if self.headers.get_all("Origin") != [f"http://{self.server.host}"]:
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        length = self.headers.get("Content-Length", "")
        if not (
            length.isascii() and length.isdigit() and len(length) <= 4 and int(length) <= _MAX_FORM_BYTES
        ):
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = self.rfile.read(int(length)).decode("ascii", "replace")
        form = {key: found[0] for key, found in parse_qs(body).items()}
        self._on_agent(lambda agent: self._press(agent, name, form))

    def _press(self, agent: Owned, name: str, form: dict[str, str]) -> _Answer:
        surveys = [asked.survey for asked in agent.account().surveys]
        left = [survey for survey in surveys if survey.digest.hex() == form.get("survey")]
        if name == "pause":
            agent.pause()
        elif name == "resume":
            agent.resume()
        elif name == "opt-out" and left:
            agent.opt_out(left[0])
        elif name == "forget" and form.get("sure") == "yes":
            agent.forget()
        else:
            return _refusal(HTTPStatus.NOT_FOUND)
        return HTTPStatus.SEE_OTHER, b""

    def _name(self) -> str | None:
        """Return the path below the token, or None if the request was refused."""
        if self.headers.get_all("Host") != [self.server.host]:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        token, _, name = self.path[1:].partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        return name

    def _on_agent(self, then: Callable[[Owned], _Answer]) -> None:
        with self.server.one_at_a_time:
            try:
                with self.server.opened() as agent:
                    found = then(agent)
            except LedgerLockedError:
                text = "The app is using this ledger right now. Look again when it is closed, or look there."
                found = HTTPStatus.SERVICE_UNAVAILABLE, message(text)
            except LedgerError as error:
                found = HTTPStatus.SERVICE_UNAVAILABLE, message(f"{error}.")
        self._answer(found)  # the ledger is free again

    def _refuse(self, status: HTTPStatus) -> None:
        self._answer(_refusal(status))

    def _answer(self, answer: _Answer, *, kind: str = "text/html") -> None:
        status, body = answer
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if status == HTTPStatus.SEE_OTHER:
            self.send_header("Location", f"/{self.server.token}/")
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: the path holds the token."""


def _refusal(status: HTTPStatus) -> _Answer:
    return status, message(f"{status.phrase}.")
