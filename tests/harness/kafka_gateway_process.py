"""A gateway on Kafka: `python kafka_gateway_process.py BOOTSTRAP TOPIC PORT DIES_AFTER NOW SURVEY...`.

NOW is seconds since 1970, or a file that says them. It ends by SIGKILL between the brokers' acceptance of its
DIES_AFTER-th append and its answers to the devices that wait for it; 0 for never.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hubbub.survey.survey import Survey
from hubbub_collector.gateway import create_app
from hubbub_collector.server import create_server
from hubbub_collector.settings import GatewaySettings
from hubbub_topic.kafka.growing_log import GrowingLog


class DyingLog(GrowingLog):
    """Kills its process when the brokers have taken a record and nobody else knows."""

    dies_after = 0
    appends = 0

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        stored = super().append(batches)
        self.appends += 1
        if self.appends == self.dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        return stored


def main(*words: str) -> None:
    bootstrap, topic, port, dies_after, now, *surveys = words
    log = DyingLog(bootstrap, topic)
    log.dies_after = int(dies_after)
    settings = GatewaySettings(linger_s=0.005)
    served = [Survey.from_canonical(Path(survey).read_bytes()) for survey in surveys]
    file = Path(now)
    clock = (lambda: float(file.read_text())) if file.exists() else (lambda: float(now))
    app = create_app(log, served, settings=settings, clock=clock)
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=512)
    create_server(app, port=int(port), settings=settings).run(sockets=[listener])
    log.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
