from hubbub_aggregator.runners.aiokafka_runner import count as count
from hubbub_aggregator.runners.assignment import Assignment as Assignment
from hubbub_aggregator.runners.counted import CountedBuilder as CountedBuilder, RoundReports as RoundReports
from hubbub_aggregator.runners.publisher import Worker as Worker
from hubbub_aggregator.runners.faust_runner import (
    DEFAULT_SESSION_S as DEFAULT_SESSION_S,
    create_app as create_app,
    run as run,
    use_event_loop as use_event_loop,
)
from hubbub_aggregator.runners.publisher import Publisher as Publisher
from hubbub_aggregator.runners.retention import Retention as Retention, rounds_of as rounds_of
