"""Checkpoints in fillmask's own format and in those of Hugging Face model families."""
