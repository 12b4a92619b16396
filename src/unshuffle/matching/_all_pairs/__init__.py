"""Sums, means and maxima over all pairs of two collections, tile by tile."""
