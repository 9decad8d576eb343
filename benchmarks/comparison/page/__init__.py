"""Writer of docs/performance.md and its pictures."""
