"""Matching by kernel matrices."""
