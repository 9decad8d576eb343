"""Servers of the contenders other than fillmask."""
