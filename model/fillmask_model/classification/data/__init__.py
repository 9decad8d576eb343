"""Labelled examples, their split, their targets and their token ids."""
