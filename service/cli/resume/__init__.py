"""Interrupted jobs: their saved answers and their identity."""
