"""How many pairs come out right, and how good layouts are, on real data.

Run with `python -m benchmarks.accuracy [NAME ...]`.

The data are read from the folder named by UNSHUFFLE_DATA, or from ../shared/data beside the
checkout. The truth is shuffled first and used only to count.
"""
