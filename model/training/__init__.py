"""Pretraining: loop, saved state, evaluation."""
