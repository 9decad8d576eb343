"""The tied encoder: its configuration, embeddings, blocks and head."""
