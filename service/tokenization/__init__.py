"""Text to tokens and back, and windows over long texts."""
