"""Statistics of cross tables: conditional shares, tests, reweighting, regression, with honest intervals."""
