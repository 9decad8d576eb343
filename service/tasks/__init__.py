"""The tasks fill-mask and scoring, which are independent of HTTP."""
