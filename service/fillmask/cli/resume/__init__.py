"""Resumable jobs, with their saved answers and their identity."""
