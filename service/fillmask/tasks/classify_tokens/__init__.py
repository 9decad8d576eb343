"""Labels of tokens and the entities that they form, such as names and places."""
