"""Checks of the real image, built and run without a container engine by `make image-check`."""
