"""Scripts that measure the figures of the README, of the model card and of docs/."""
