"""Export of a checkpoint to a verified bundle."""
