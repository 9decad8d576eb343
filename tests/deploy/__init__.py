"""Tests of the image, compose.yaml and the Kubernetes manifests."""
