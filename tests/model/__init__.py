"""Tests of model/, with an independent oracle, the library transformers and tiny training runs."""
