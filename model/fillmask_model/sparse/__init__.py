"""Training of sparse encoders for search (SPLADE)."""
