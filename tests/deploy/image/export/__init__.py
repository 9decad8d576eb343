"""Run of the export image, for `make export-image-check`."""
