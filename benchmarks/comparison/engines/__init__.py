"""Runtimes of the contenders with a common interface."""
