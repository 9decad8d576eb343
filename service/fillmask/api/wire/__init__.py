"""Adapters for the wire formats of other model servers."""
