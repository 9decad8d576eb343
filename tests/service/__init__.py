"""Tests of service/."""
