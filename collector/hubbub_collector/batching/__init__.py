"""The way of judged uploads into the log: a batch, the uploads that wait for it, and the writer of both."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_collector.batching.batcher import ByteBudget
    from hubbub_collector.batching.writer import Writer, never_gone

__all__ = ["ByteBudget", "Writer", "never_gone"]

attach(
    __name__,
    {
        "hubbub_collector.batching.batcher": ("ByteBudget",),
        "hubbub_collector.batching.writer": (
            "Writer",
            "never_gone",
        ),
    },
)
