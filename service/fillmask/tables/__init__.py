"""Text files and tables as people have them. model/ reads its tables with this package too."""
