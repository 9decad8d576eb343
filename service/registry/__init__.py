"""Models by name: loaded, verified, reloaded."""
