"""Pipelines that fill masks, score texts and classify texts, independent of HTTP."""
