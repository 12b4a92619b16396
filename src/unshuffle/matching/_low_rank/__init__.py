"""Matching by factors, whose kernel matrices are never formed."""
