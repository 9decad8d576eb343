"""Readers, converters and trainers of tokenizers."""
