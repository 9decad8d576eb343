"""Heads at the end of the served graph."""
