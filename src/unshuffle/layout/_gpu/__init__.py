"""The search for layouts on a GPU."""
