"""Tests of the checkpoint families."""
