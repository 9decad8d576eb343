"""Tests, in directories that mirror the packages."""
