"""Models by name: loading, verification and reloading."""
