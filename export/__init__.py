"""Export of a checkpoint to a verified bundle."""

__distribution__ = "fillmask"  # service/startup/entry_points.py reads this line
