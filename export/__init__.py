"""From a checkpoint to a verified bundle."""
