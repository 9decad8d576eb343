"""Checkpoints, ours and those of other model families."""
