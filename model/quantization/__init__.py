"""Quantization to int8: calibration, smoothing, rounding."""
