"""Classify sets whose elements have no order."""
