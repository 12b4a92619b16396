"""Speed and accuracy as ratios to peers, both measured in the same run.

Run with ``make bench``, or ``python -m benchmarks [--quick] [--json FILE]``.
"""
