"""
Can a whole sphere be learned from a patch?
===========================================

The points come from a small patch of a sphere. `OrbitLearner` learns the transformations that
connect them, from the points alone and without any knowledge of spheres or rotations. Applied
further, these transformations reach the rest of the sphere.
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
fig = plt.figure(figsize=(8, 5.2), layout="constrained")
display.plot(fig.add_subplot(projection="3d"), reach=4)
display.ax_.legend(loc="center left", bbox_to_anchor=(1.05, 0.5), frameon=False)

# %%
# How many generators?
# --------------------
#
# For every pair of neighbors some matrix maps one to the other. The fit finds matrices for all
# pairs that together span few directions. Their spectrum drops steeply after the second.

display.plot_spectrum()
print("generators:", learner.n_generators_)

# %%
# How far beyond the patch?
# -------------------------
#
# Principal components fit a plane to the patch, which leaves the sphere immediately. The error is
# the distance of unseen points from the orbit or from the plane.

center = patch.mean(axis=0)
axes = np.linalg.svd(patch - center, full_matrices=False)[2][:2]
plane = (unseen - center) @ axes.T @ axes + center
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
# Noise distorts the generators. If you know that the motion is a rotation, pass
# ``structure="skew"``. All vectors of an orbit then have the same length, and the only error left
# is the noise of the prototype, which is one of the points.

for noise in (0.01, 0.03):
    noisy = patch + noise * rng.normal(size=patch.shape)
    for structure in ("general", "skew"):
        model = OrbitLearner(2, structure=structure, random_state=0).fit(noisy)
        missed = model.inverse_transform(model.transform(unseen)) - unseen
        error = np.sqrt(np.mean(np.sum(missed**2, axis=1)))
        print(f"noise {noise}, {structure:8}: error on unseen points {error:.3f}")

# %%
# Which group is it?
# ------------------
#
# The commutator of rotations about two axes is a rotation about the third. It lies outside the
# span of the two generators, so `closure_` is 1. The points determine two generators only. If you
# ask for three, the third is that commutator, and the span is closed. The structure constants are
# then those of the rotations of space: antisymmetric in all three indices.

print("two generators, closure:", round(learner.closure_, 3))
three = OrbitLearner(3, random_state=0).fit(patch)
print("determined by the data:", three.n_determined_)
print("three generators, closure:", round(three.closure_, 3))
print(np.round(three.structure_constants_, 3) + 0.0)

plt.show()

# %%
# What to try next
# ----------------
#
# - Fit points of an ellipsoid: ``patch * [1, 2, 3]``. Its generators are not rotations, but
#   ``structure="general"`` finds them.
# - Use a smaller patch or more noise: when does the orbit miss the other side?
# - `plot_orbit_of_digits.py` learns to rotate pictures.
