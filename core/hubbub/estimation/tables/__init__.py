"""Statistics of cross tables: conditional shares, tests, reweighting, regression, with honest intervals."""

from hubbub.lazy import attach

attach(__name__)
