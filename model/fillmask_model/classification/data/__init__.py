"""Labelled examples, their split and their targets."""
