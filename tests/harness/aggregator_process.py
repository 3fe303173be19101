"""A worker process: `aggregator_process.py faust|plain BOOTSTRAP TOPIC REDIS_URL [GAP_S [GATE]]`.

While the file GATE is there nothing of the store is loaded; GATE.waits says that a load waits for it to go.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.runners import assignment
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_topic.kafka.growing_log import GrowingLog


class GatedStore(RedisStore):
    """A store whose loads wait at a gate."""

    gate: Path

    def load(self, partition: int) -> PartitionState:
        while self.gate.exists():
            self.gate.with_suffix(".waits").touch()
            time.sleep(0.02)
        return super().load(partition)


def main(kind: str, bootstrap: str, topic: str, redis_url: str, *rest: str) -> int:
    gap_s, gate = (*rest, *("", "no gate")[len(rest) :])
    if gap_s:
        assignment.GAP_PATIENCE_S = float(gap_s)
    log = GrowingLog(bootstrap, topic, layout_s=1.0)
    store = GatedStore.connect(
        redis_url, log_identity=log.identity, partitions=log.partitions, partition_map=log.partition_map
    )
    assert isinstance(store, GatedStore)
    store.gate = Path(gate)
    if kind != "plain":
        from hubbub_aggregator.runners.faust_runner import create_app, run

        # Killed workers are missed after two seconds, so that tests are quick; groups are small, so that a
        # kill falls between two of them.
        app = create_app(
            log,
            store,
            bootstrap=bootstrap,
            group=topic,
            session_s=2,
            group_records=8,
        )
        return run(app)
    from hubbub_aggregator.runners import aiokafka_runner

    async def count() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        counting = assignment.Assignment(
            store, begin=log.begin, end=log.end, partition_map=log.partition_map, clock=time.monotonic
        )
        await aiokafka_runner.count(
            counting,
            bootstrap=bootstrap,
            partition_map=log.partition_map,
            stop=stop,
            group_records=8,
        )

    asyncio.run(count())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
