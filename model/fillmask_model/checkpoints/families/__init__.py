"""Names of tensors and configuration fields in the checkpoints of each family."""
