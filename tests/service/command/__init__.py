"""The tests of `fillmask`, the command."""
