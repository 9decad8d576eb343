"""Text to rows of tokens: mixing, packing and masking."""
