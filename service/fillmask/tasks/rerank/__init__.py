"""Texts in the order of their relevance to a query."""
