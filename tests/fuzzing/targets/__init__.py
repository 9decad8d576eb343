"""Targets of the fuzzing, one parser or reader each."""
