from hubbub_aggregator.web.api import create_app as create_app
from hubbub_aggregator.web.metrics import ViewCollector as ViewCollector
from hubbub_aggregator.web.responses import ANY_ORIGIN as ANY_ORIGIN, PROBLEM_HANDLERS as PROBLEM_HANDLERS
from hubbub_aggregator.web.stream_caps import StreamCaps as StreamCaps
from hubbub_aggregator.web.view import LiveView as LiveView, compose as compose, total_of as total_of
from hubbub_aggregator.web.worker_http import worker_page as worker_page
from hubbub_aggregator.web.table_statistics import STATISTICS as STATISTICS, table_facts as table_facts
