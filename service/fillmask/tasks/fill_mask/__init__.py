"""Fill-mask: plans of the texts, strategies, targets and ranking."""
