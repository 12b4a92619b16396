"""Walls of pictures: pyramids of tiles, and the page that shows them."""
