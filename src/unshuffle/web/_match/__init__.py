"""The view of a match."""
