"""Tests of model/: against an independent oracle, against transformers, and on tiny runs."""
