"""Bounds on quadratic problems, and proofs."""
