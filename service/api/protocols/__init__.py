"""Wire formats of other model servers."""
