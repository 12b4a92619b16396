"""
Can pieces of one photograph draw another?
==========================================

A collage puts a tile into each cell of a template, so that from afar the tiles look like the
template. The tiles here are crops of a photograph of a temple, the template is a photograph of a
flower, and no tile is used twice. Two wishes pull against each other: a tile should resemble the
spot it covers, and it should go with the tiles around it.
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
# Like the template, or like the neighbours?
# ------------------------------------------
#
# `smoothness` divides the weight between the two. At 0 the answer is the best assignment of tiles
# to cells there is; more makes areas calmer and the picture fainter. Both are measured in the same
# way, as mean squared differences of colour (CIE Lab): between tiles and template (`cost_`), and
# between neighbours (`roughness_`).

fig, axes = plt.subplots(2, 2, figsize=(10, 7.4), layout="constrained")
for ax, smoothness in zip(axes.flat, (0.0, 0.3, 0.7, 0.95), strict=True):
    fitted = Collage(flower, SHAPE, smoothness, random_state=0).fit(tiles)
    ax.imshow(fitted.render(tiles))
    ax.set_title(
        f"smoothness {smoothness}: {fitted.cost_:.0f} from the template,\n"
        f"{fitted.roughness_:.0f} between neighbours",
        fontsize=10,
    )
    ax.set_axis_off()

# %%
# Calm, but not across an edge
# ----------------------------
#
# With `neighbors="laplacian"` two cells count as neighbours as far as the template is alike there.
# The flower may then be calm and the leaves as well, without one running into the other.

fig, axes = plt.subplots(1, 2, figsize=(10, 3.7), layout="constrained")
for ax, neighbors in zip(axes, ("kernel", "laplacian"), strict=True):
    fitted = Collage(flower, SHAPE, 0.8, neighbors=neighbors, random_state=0).fit(tiles)
    ax.imshow(fitted.render(tiles))
    ax.set_title(f"{neighbors}: {fitted.cost_:.0f} from the template", fontsize=10)
    ax.set_axis_off()

# %%
# A larger choice
# ---------------
#
# More tiles to choose from come closer to the template, and so does using the best of them several
# times. Repeats show, though: with some smoothness, copies of a tile stand side by side.

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
# - Draw the temple with pieces of the flower: swap the two. Which colours are missing?
# - ``detail=1`` compares mean colours only. What happens at the rim of the flower?
# - Photos of your own: ``unshuffle collage portrait.jpg photos/ -o collage.png``.
