"""Fine-tuning of an encoder: to label texts, or to make sparse vectors for search (SPLADE)."""
