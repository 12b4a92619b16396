"""Transformations that generate the data, learned from points of their orbits."""

from unshuffle.orbits._orbit_learner import OrbitLearner

__all__ = ["OrbitLearner"]
