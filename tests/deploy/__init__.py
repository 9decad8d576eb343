"""The tests of what people deploy: the image, compose and Kubernetes."""
