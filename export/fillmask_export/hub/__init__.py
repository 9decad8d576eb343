"""Download of checkpoints from a hub that is not trusted."""
