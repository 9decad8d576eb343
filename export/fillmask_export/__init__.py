"""Export of a checkpoint to a verified bundle."""

__distribution__ = "fillmask"  # service/fillmask/startup/entry_points.py reads this line
