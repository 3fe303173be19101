"""A gateway in a process of its own: `python gateway_process.py LOG SURVEY...`.

It prints its port, and ends when its stdin does. The surveys are files of canonical bytes.
"""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

from hubbub.survey.survey import Survey
from hubbub_collector.gateway import create_app
from hubbub_collector.server import create_server
from hubbub_collector.settings import GatewaySettings
from hubbub_topic.sqlite import SqliteLog


def main() -> None:
    surveys = [Survey.from_canonical(Path(name).read_bytes()) for name in sys.argv[2:]]
    settings = GatewaySettings(linger_s=0.002)
    log = SqliteLog(Path(sys.argv[1]))
    server = create_server(create_app(log, surveys, settings=settings), port=0, settings=settings)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)

    def end_with_stdin() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_stdin, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    server.run(sockets=[listener])
    log.close()


if __name__ == "__main__":
    main()
