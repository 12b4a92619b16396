"""Accuracy on real data: right pairs, layout quality, classification and orbits.

Run with `python -m benchmarks.accuracy [NAME ...]`.

The data are read from the folder named by UNSHUFFLE_DATA, or from ../shared/data next to the
checkout. True pairs are shuffled first and used only to count right pairs.
"""
