"""Targets and the model passes that score them."""
