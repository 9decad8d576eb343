"""Parameters of every task, with their rules and the messages that refuse them."""
