"""Tests of model/ with an independent oracle, with transformers and on tiny runs."""
