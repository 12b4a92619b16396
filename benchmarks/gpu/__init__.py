"""What a GPU reaches; one module for each kind of work, run by `python -m benchmarks.gpu.NAME`."""
