"""Int8 weights of linear layers, by calibration and GPTQ."""
