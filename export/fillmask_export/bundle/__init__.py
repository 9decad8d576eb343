"""Writing of a bundle: its files, its description and its fused graph."""
