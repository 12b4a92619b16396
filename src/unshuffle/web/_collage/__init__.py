"""The view of a collage."""
