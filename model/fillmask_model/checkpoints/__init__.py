"""Checkpoints in fillmask's own format and in the formats of Hugging Face model families."""
