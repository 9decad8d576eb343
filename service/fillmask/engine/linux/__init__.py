"""What the engine does with memory, threads and the instructions of the CPU."""
