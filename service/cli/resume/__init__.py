"""Resuming a job over a whole file."""
