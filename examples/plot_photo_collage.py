"""
Can one photograph be made from pieces of another?
==================================================

A collage fills each cell of a template with a tile, so that from a distance the tiles look like
the template. Here the tiles are crops of a photograph of a temple, the template is a photograph of
a flower, and no tile is used twice. Two goals conflict: a tile should resemble the part of the
template it covers, and it should match the tiles around it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from unshuffle import Collage
from unshuffle.plotting import CollageDisplay

SHAPE, SIDE = (26, 39), 24
flower, temple = (load_sample_image(name) for name in ("flower.jpg", "china.jpg"))
rng = np.random.default_rng(0)
corners = rng.integers(0, np.array(temple.shape[:2]) - SIDE, (2000, 2))
tiles = np.stack([temple[y : y + SIDE, x : x + SIDE] for y, x in corners])

collage = Collage(flower, SHAPE, random_state=0).fit(tiles)
CollageDisplay.from_estimator(collage, tiles).plot()

# %%
# Match the template or the neighbors?
# ------------------------------------
#
# `smoothness` sets the balance between the two goals. At 0 the result is the optimal assignment of
# tiles to cells. Larger values give smoother areas and a fainter picture. Both goals are measured
# as mean squared color differences (CIE Lab): `cost_` between tiles and template, `roughness_`
# between neighboring tiles.

fig, axes = plt.subplots(2, 2, figsize=(10, 7.4), layout="constrained")
for ax, smoothness in zip(axes.flat, (0.0, 0.3, 0.7, 0.95), strict=True):
    fitted = Collage(flower, SHAPE, smoothness, random_state=0).fit(tiles)
    ax.imshow(fitted.render(tiles))
    ax.set_title(
        f"smoothness {smoothness}: {fitted.cost_:.0f} from the template,\n"
        f"{fitted.roughness_:.0f} between neighbors",
        fontsize=10,
    )
    ax.set_axis_off()

# %%
# Smooth areas with sharp edges
# -----------------------------
#
# With `neighbors="laplacian"` two neighboring cells count more the more similar the template is at
# both. Flower and leaves can then each be smooth without blending into each other.

fig, axes = plt.subplots(1, 2, figsize=(10, 3.7), layout="constrained")
for ax, neighbors in zip(axes, ("kernel", "laplacian"), strict=True):
    fitted = Collage(flower, SHAPE, 0.8, neighbors=neighbors, random_state=0).fit(tiles)
    ax.imshow(fitted.render(tiles))
    ax.set_title(f"{neighbors}: {fitted.cost_:.0f} from the template", fontsize=10)
    ax.set_axis_off()

# %%
# More tiles
# ----------
#
# A larger choice of tiles comes closer to the template, and so does using the best tiles several
# times. Repeats are visible, though: with some smoothness, copies of a tile end up side by side.

for n_tiles in (1014, 2000):
    costs = [
        Collage(flower, SHAPE, 0, repeat=repeat).fit(tiles[:n_tiles]).cost_ for repeat in (1, 2, 4)
    ]
    print(f"{n_tiles} tiles used up to 1, 2 and 4 times:", *np.round(costs).astype(int))

plt.show()

# %%
# What to try next
# ----------------
#
# - Swap the two photographs and make the temple from pieces of the flower. Which colors are
#   missing?
# - Compare only mean colors with ``detail=1``. What happens at the edge of the flower?
# - Use your own photos: ``unshuffle collage portrait.jpg photos/ -o collage.png``.
