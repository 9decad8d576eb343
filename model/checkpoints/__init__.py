"""Checkpoints: our own format and those of Hugging Face model families."""
