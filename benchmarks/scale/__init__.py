"""Check and measurement of the recipes in docs/scale-out.md, for `make scale-check`."""
