"""Log-probabilities of the tokens of texts."""
