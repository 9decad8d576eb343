"""Worked example of docs/sparse.md: a search of news with a sparse encoder trained for it."""
