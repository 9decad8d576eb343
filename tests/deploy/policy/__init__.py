"""Policy check of the image and the manifests, run by `make policy-check`."""
