"""The id table as machine code, of the extra `speed`: `table`, its `loops`, and what these are made with."""
