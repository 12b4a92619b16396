"""Walls of 100,000 pictures and of 600,000 colors: how they are made, and how they open.

`python -m benchmarks pages` makes the pictures, lays them out and opens the wall in Chromium.
"""
