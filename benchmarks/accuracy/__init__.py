"""How many pairs come out right on real data: `python -m benchmarks.accuracy [NAME ...]`.

The data are read from the folder named by UNSHUFFLE_DATA, or from ../shared/data beside the
checkout. The truth is shuffled first and used only to count.
"""
