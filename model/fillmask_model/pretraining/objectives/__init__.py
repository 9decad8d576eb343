"""Losses of pretraining and their parts of the vocabulary."""
