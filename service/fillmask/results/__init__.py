"""Results of every task, and their JSON form."""
