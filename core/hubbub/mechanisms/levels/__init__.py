"""Reports about one level of a hierarchy of categories."""

from hubbub.lazy import attach

attach(__name__)
