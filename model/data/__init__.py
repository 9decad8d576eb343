"""Preparation of training data: rows of tokens, masking, mixtures, decontamination."""
