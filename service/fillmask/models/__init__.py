"""Loading, verification and reloading of models by name."""
