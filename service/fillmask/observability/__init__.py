"""Statistics, metrics, logs, traces and health."""
