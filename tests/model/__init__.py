"""Tests of model/, by an independent oracle, by transformers and on tiny runs."""
