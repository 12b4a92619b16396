"""The deep search of `quadratic_assignment`."""
