"""Linear assignment, and what its prices prove."""
