"""Tasks: fill-mask and scoring. They take texts and know nothing of HTTP."""
