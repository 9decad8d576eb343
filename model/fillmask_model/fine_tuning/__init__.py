"""Reading of examples, their token ids, and the loop of fine-tuning."""
