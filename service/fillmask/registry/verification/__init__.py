"""Verification of a loaded model: golden results and a time limit."""
