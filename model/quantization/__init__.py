"""Calibration and rounding to int8."""
