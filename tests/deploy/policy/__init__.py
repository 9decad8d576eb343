"""What a policy checker has against the image and the manifests: `make policy-check`."""
