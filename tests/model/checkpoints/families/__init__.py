"""Tests of the families of checkpoints."""
