from hubbub_collector.batching.batcher import ByteBudget as ByteBudget
from hubbub_collector.batching.writer import Writer as Writer, never_gone as never_gone
