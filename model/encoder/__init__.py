"""The tied encoder: configuration, embeddings, blocks and head."""
