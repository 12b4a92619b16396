"""The quadratic matching problem, its ascent, and soft matchings."""
