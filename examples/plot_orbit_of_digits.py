"""
Can rotation be learned from examples?
======================================

The training data are 200 handwritten digits, each paired with a copy rotated by 15 degrees.
`OrbitLearner` finds one matrix whose exponentials rotate all of them. The same matrix then rotates
new digits by any angle.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, rotate, zoom
from sklearn.datasets import load_digits

from unshuffle import OrbitLearner
from unshuffle.plotting import OrbitDisplay

STEP, SIZE = 15, 22
NEW = (1500, 1528, 1510)
images = load_digits().images


def turned(image, degrees):
    large = np.pad(zoom(image, 2, order=1), 3)
    return gaussian_filter(rotate(large, degrees, reshape=False, order=1), 1.0).ravel()


start = np.random.default_rng(0).uniform(0, 360, 200)
before = np.array([turned(*each) for each in zip(images[:200], start, strict=True)])
after = np.array([turned(*each) for each in zip(images[:200], start + STEP, strict=True)])

learner = OrbitLearner(
    1, structure="skew", n_components=30, n_init=1, tol=1e-4, random_state=0
).fit(before, after)

# %%
# What the generator does
# -----------------------
#
# In the second picture of each row, red pixels darken and blue pixels fade as the rotation starts.
# Those after it are views at steps of 45 degrees. They are slightly blurred because only 30 of 484
# dimensions are kept.

step = learner.coefficients_.mean()
new = np.array([turned(images[k], 0) for k in NEW])
display = OrbitDisplay.from_estimator(learner, before[:20])
fig, axes = plt.subplots(3, 1, figsize=(10, 3.6), layout="constrained")
for digit, ax in zip(new, axes, strict=True):
    display.plot_flow(digit, ax, shape=(SIZE, SIZE), steps=step * np.arange(0, 25, 3))
    for k, label in enumerate(ax.texts[2:]):
        label.set_text(f"{3 * STEP * k}°")

# %%
# How good are the views?
# -----------------------
#
# The error of each view, averaged over the three new digits, and the error without any rotation.

degrees = np.arange(0, 361, STEP)
fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
truth = np.array([[turned(images[k], angle) for angle in degrees] for k in NEW])
views = np.array([learner.orbit(x, step * degrees[:, np.newaxis] / STEP) for x in new])
for guess, name, color in ((new[:, None], "not rotated", "#9a8c78"), (views, "orbit", "#0f6948")):
    error = np.sqrt(np.mean((guess - truth) ** 2, axis=(0, 2)))
    ax.plot(degrees, error, color=color, linewidth=2, label=name)
    print(f"{name}: error {error.mean():.2f} of a spread of {truth.std():.2f}")
ax.set(xlabel="degrees", ylabel="error", xticks=np.arange(0, 361, 90), ylim=(0, None))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

# %%
# What was learned
# ----------------
#
# The matrix rotates planes in the space of images, each at its own speed. A full turn restores
# every picture, so the speeds must be whole numbers, for patterns that repeat once, twice or three
# times around the circle. The fit does not enforce this, yet the learned speeds are close to whole
# numbers. The fastest ones, which carry the finest detail, are the least accurate.

speeds = np.abs(np.linalg.eigvals(learner.generators_[0]).imag) * abs(step) / np.radians(STEP)
speeds = np.sort(speeds)[::2]
print("speeds:", speeds.round(2))
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.plot(np.arange(1, len(speeds) + 1), speeds, "o", color="#0f6948")
ax.grid(axis="y", linewidth=0.5)
ax.set(xlabel="plane", ylabel="turns per turn", yticks=np.arange(8))
ax.spines[["top", "right"]].set_visible(False)

plt.show()

# %%
# What to try next
# ----------------
#
# - Raise ``n_components`` for sharper views. The fit takes longer.
# - Try other motions: shift the digits cyclically with ``np.roll``, or make them grow.
# - Pass ``pairs`` instead of ``y``: views of one object in sequence, each paired with the next.
