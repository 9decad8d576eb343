"""Pretraining loop, saved state and evaluation."""
