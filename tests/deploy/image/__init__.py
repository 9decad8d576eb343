"""Checks of the real image, which `make image-check` builds and runs without a container engine."""
