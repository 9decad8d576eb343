"""Conversion between text and tokens, and windows over long texts."""
