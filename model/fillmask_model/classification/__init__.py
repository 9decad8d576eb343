"""Fine-tuning of an encoder to classify texts, with a comparison to training from scratch."""
