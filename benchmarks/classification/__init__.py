"""Worked example of text classification, for docs/classification.md."""
