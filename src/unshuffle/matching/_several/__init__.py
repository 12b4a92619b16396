"""Several collections at once, and columns that two tables share."""
