"""Speed, memory and behaviour under load."""
