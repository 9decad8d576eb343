"""Policy check of the Dockerfile and the manifests, run by `make policy-check`."""
