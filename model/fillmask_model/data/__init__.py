"""Preparation of training data, with masking, mixtures and decontamination."""
