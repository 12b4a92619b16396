"""Accuracy on real data beyond the papers: right pairs, layouts, sets and generators.

Run with `python -m benchmarks.accuracy [NAME ...]`. What the papers claim is in benchmarks.papers.

The data are read from the folder named by UNSHUFFLE_DATA, or from ../shared/data next to the
checkout. True pairs are shuffled first and used only to count right pairs.
"""
