"""Speed, memory and accuracy relative to other libraries, measured in the same run.

Run with ``make bench``, or ``python -m benchmarks [AREA ...] [--quick]``.
"""
