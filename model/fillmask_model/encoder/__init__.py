"""Tied encoder with its configuration, embeddings, blocks and head."""
