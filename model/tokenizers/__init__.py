"""Reading and training tokenizers."""
