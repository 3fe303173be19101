"""Local differential privacy for streams of reports: the mathematics and the contracts."""
