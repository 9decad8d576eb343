"""Filling and scoring: texts in, answers out; no HTTP."""
