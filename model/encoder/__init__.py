"""Tied encoder: configuration, embeddings, blocks and head."""
