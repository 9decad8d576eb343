"""Tasks: fill-mask and scoring. Tasks are independent of HTTP: texts in, results out."""
