"""Matching of large collections: right pairs, time and memory, beside other libraries.

Run with `python -m benchmarks.scale [cloud|networks|switch|growth|peers ...]`.
"""
