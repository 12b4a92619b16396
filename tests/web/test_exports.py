import time

import numpy as np
from PIL import Image

from unshuffle.images import read_folder
from unshuffle.web._wall.exports import WALL_MAKERS, WallPicture


class Slow:
    """A job that takes longer to count the sooner it is told."""

    def __init__(self):
        self.done = []

    def count(self, done, total):
        time.sleep(0.05 if done == 1 else 0)
        self.done.append((done, total))


def test_progress_of_a_picture_never_runs_backwards(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for k in range(30):
        Image.new("RGB", (60, 40), (8 * k, 0, 0)).save(photos / f"{k}.png")
    pictures = read_folder(photos, size=16, previews=64, cache=None)
    job, grid = Slow(), np.arange(30).reshape(5, 6)
    made, kind = WALL_MAKERS["png"](
        job, tmp_path, WallPicture("t", pictures, grid, pictures.names, None)
    )
    assert (made.name, kind) == ("wall.png", "image/png")
    assert job.done == [(k, 30) for k in range(1, 31)]
