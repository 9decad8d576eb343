"""Training data: text to packed rows, short texts, masking, mixtures, decontamination."""
