"""Matching of large collections: right pairs, time and memory over several draws.

Run with `python -m benchmarks.scale [cloud|networks|switch ...]`.
"""
