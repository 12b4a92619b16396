"""
Can a patch tell what the whole sphere is?
==========================================

Points of a small patch of a sphere say nothing about its other side, unless one knows what moves
them: then the patch is part of an orbit, and the orbit goes on. `OrbitLearner` learns what moves
the points, from the points alone. Nobody tells it about spheres or rotations.
"""

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import OrbitLearner
from unshuffle.plotting import OrbitDisplay

rng = np.random.default_rng(0)


def on_sphere(low, high, n):
    azimuth, elevation = np.radians(rng.uniform(low, high, (2, n)))
    flat = np.cos(elevation)
    return np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])


patch, unseen = on_sphere(20, 70, 200), on_sphere(-20, 110, 100)
learner = OrbitLearner(random_state=0).fit(patch)
display = OrbitDisplay.from_estimator(learner, patch, unseen=unseen)
display.plot(reach=4)

# %%
# How many motions?
# -----------------
#
# Every pair of neighbours needs some matrix that carries one onto the other. Matrices that span
# few directions are found for all pairs; their spectrum falls steeply after the second.

display.plot_spectrum()
print("generators:", learner.n_generators_)

# %%
# How far beyond the patch?
# -------------------------
#
# Principal components follow the patch by a plane, which leaves the sphere at once. The error is
# the distance of points from the orbit, or from the plane.

centre = patch.mean(axis=0)
axes = np.linalg.svd(patch - centre, full_matrices=False)[2][:2]
plane = (unseen - centre) @ axes.T @ axes + centre
orbit = learner.inverse_transform(learner.transform(unseen))
away = np.degrees(np.arccos(np.clip(unseen @ learner.prototype_, -1, 1)))

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for guess, name, color in ((plane, "plane", "#9a8c78"), (orbit, "orbit", "#0f6948")):
    error = np.linalg.norm(guess - unseen, axis=1)
    ax.scatter(away, error, s=16, c=color, linewidths=0, label=name)
    print(f"{name}: root mean squared error on unseen points {np.sqrt(np.mean(error**2)):.3g}")
ax.set(xlabel="degrees from the prototype", ylabel="error")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

# %%
# With noise
# ----------
#
# Noise bends what is found. Whoever knows that nothing but turning is going on says so with
# ``structure="skew"``: orbits then keep their length, and all that is left is the noise of the
# prototype, which is one of the points.

for noise in (0.01, 0.03):
    noisy = patch + noise * rng.normal(size=patch.shape)
    for structure in ("general", "skew"):
        model = OrbitLearner(2, structure=structure, random_state=0).fit(noisy)
        error = np.sqrt(-model.score(unseen))
        print(f"noise {noise}, {structure:8}: error on unseen points {error:.3f}")

# %%
# Which group is it?
# ------------------
#
# Turning about one axis, then another, and both back again, is a turn about the third: the
# commutator of the two generators lies outside their span, and `closure_` is 1. With a third
# generator the span is closed, and the structure constants are those of the rotations of space:
# antisymmetric in all three indices.

print("two generators, closure:", round(learner.closure_, 3))
three = OrbitLearner(3, structure="skew", random_state=0).fit(patch)
print("three generators, closure:", round(three.closure_, 3))
print(np.round(three.structure_constants_, 3) + 0.0)

plt.show()

# %%
# What to try next
# ----------------
#
# - Points of an ellipsoid: ``patch * [1, 2, 3]``. Its generators are no rotations, and "general"
#   matrices find them.
# - A smaller patch, or more noise: when does the orbit miss the other side?
# - `plot_orbit_of_digits.py` learns what turns a picture.
