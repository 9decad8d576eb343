"""The real image, built without a container engine and run: `make image-check`."""
