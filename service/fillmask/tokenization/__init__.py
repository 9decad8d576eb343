"""Tokenization, detokenization and windows over long texts."""
