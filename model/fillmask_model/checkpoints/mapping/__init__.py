"""Reader of config.json and of tensors by the mapping of a family."""
