"""Pairs and labels over HTTP, compared with transformers on the same weights."""
