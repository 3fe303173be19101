"""The bytes that travel: reports, uploads, records, packing and the partition map."""

from hubbub.lazy import attach

attach(__name__)
