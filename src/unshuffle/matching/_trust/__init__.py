"""How far a matching can be trusted, and which pairs would help most."""
