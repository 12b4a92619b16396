"""Speed and accuracy relative to other libraries, measured in the same run.

Run with ``make bench``, or ``python -m benchmarks [--quick] [--json FILE]``.
"""
