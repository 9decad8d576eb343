"""Training of text classifiers from an encoder, and comparison with training from scratch."""
