"""The search for layouts on the CPU."""
