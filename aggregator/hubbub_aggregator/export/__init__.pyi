from hubbub_aggregator.export.csv_table import csv_pieces as csv_pieces
from hubbub_aggregator.export.json_lines import json_lines as json_lines
from hubbub_aggregator.export.parquet import (
    can_write_parquet as can_write_parquet,
    write_parquet as write_parquet,
)
from hubbub_aggregator.export.tidy import (
    ALWAYS as ALWAYS,
    COLUMNS as COLUMNS,
    CROWD as CROWD,
    VIEWS as VIEWS,
    tidy_rows as tidy_rows,
)
