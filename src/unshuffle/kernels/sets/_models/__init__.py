"""Models of sets: mixtures in input and feature space, vectors."""
