"""A folder with small files under the names that commands in the documentation use."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from sklearn.datasets import load_sample_image

from unshuffle.datasets import make_paired_views, photo_halves

# A source archive has neither docs nor examples.
if not (Path(__file__).resolve().parents[3] / "docs").exists():
    collect_ignore_glob = ["*.py"]

N_ROWS = 40


def write_table(path, names, values, *, name="name"):
    heading = [name, *(f"c{k}" for k in range(values.shape[1]))]
    lines = [[name, *map(repr, row.tolist())] for name, row in zip(names, values, strict=True)]
    path.write_text("\n".join(",".join(line) for line in [heading, *lines]) + "\n")


def write_tables(folder):
    """Two tables of the same rows in three formats, and pairs of them that are known."""
    X, y, truth = make_paired_views(N_ROWS, noise=0.02, bend=0.2, random_state=0)
    for values, letter, names in ((X, "a", ("a", "rna", "old")), (y, "b", ("b", "atac", "new"))):
        rows = [f"{letter}{i}" for i in range(N_ROWS)]
        for name in names:
            id_column = "customer" if name in ("old", "new") else "name"
            write_table(folder / f"{name}.csv", rows, values, name=id_column)
            np.save(folder / f"{name}.npy", values)
    known = [f"a{i},b{truth[i]}" for i in range(10)]
    (folder / "known.csv").write_text("\n".join(known) + "\n")
    (folder / "likely.csv").write_text("\n".join(f"{each},0.8" for each in known) + "\n")
    write_table(folder / "songs.csv", [f"song {i}" for i in range(N_ROWS)], X)
    # Points on the plane, to morph.
    angle = np.linspace(0, 6, N_ROWS)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    for name, points in (("before", circle), ("after", circle * [2, 0.5])):
        np.savetxt(folder / f"{name}.csv", points, delimiter=",")


def write_anndata(folder):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    for name, letter, part in (("rna", "a", "X_pca"), ("atac", "b", "X_lsi")):
        values = np.load(folder / f"{name}.npy")
        with h5py.File(folder / f"{name}.h5ad", "w") as file:
            file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
            file.create_group("obs").attrs["_index"] = "barcode"
            rows = [f"{letter}{i}" for i in range(len(values))]
            file["obs"].create_dataset("barcode", data=rows, dtype=h5py.string_dtype())
            file["X"] = values
            file[f"obsm/{part}"] = values


def write_pictures(folder):
    """Folders of halves of photos, an album, and single pictures."""
    left, right, _ = photo_halves(24, random_state=0)
    for names, halves in ((("left", "A", "a"), left), (("right", "B", "b"), right)):
        for name in names:
            (folder / name).mkdir(exist_ok=True)  # some systems do not distinguish A and a
            for i, half in enumerate(halves):
                Image.fromarray(half).save(folder / name / f"{i:02}.png")
    flower = Image.fromarray(load_sample_image("flower.jpg"))
    rng = np.random.default_rng(0)
    for name, n in (("photos", 40), ("album/sea", 40), ("album/town", 40), ("many", 480)):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            x, y = rng.integers(0, 300, 2)
            flower.crop((x, y, x + 64, y + 48)).save(folder / name / f"{i:02}.jpg")
    lines = [f"{i:02}.jpg,{2000 + i % 3},{('sea', 'town')[i % 2]}" for i in range(40)]
    (folder / "table.csv").write_text("\n".join(["name,year,place", *lines]) + "\n")
    (folder / "wall.csv").write_text("item,name,row,column,cell\n0,00.jpg,2,3,27\n")
    (folder / "cells.csv").write_text("00.jpg,0,3\n01.jpg,1,1\n")
    for name in ("portrait", "flower"):
        flower.resize((120, 80)).save(folder / f"{name}.jpg")
    for name in ("heart", "three", "nine"):
        picture = Image.new("L", (60, 60), 255)
        draw = ImageDraw.Draw(picture)
        draw.ellipse((10, 5, 45, 35) if name == "nine" else (5, 10, 50, 50), fill=0)
        if name == "nine":
            draw.rectangle((35, 20, 45, 55), fill=0)
        picture.save(folder / f"{name}.png")


def write_texts(folder):
    words = ("river boat water fish bridge", "bread oven flour salt baker")
    for name in ("letters", "english", "deutsch"):
        (folder / name).mkdir()
        for i in range(20):
            some = words[i % 2].split()
            text = " ".join(some[i % 5 :] + some)
            (folder / name / f"{i:02}.txt").write_text(f"{text} {i}\n")


@pytest.fixture(scope="session")
def named_files(tmp_path_factory):
    """All of them, written once."""
    folder = tmp_path_factory.mktemp("named")
    write_tables(folder)
    write_pictures(folder)
    write_texts(folder)
    return folder


@pytest.fixture
def folder(named_files, tmp_path, monkeypatch):
    """A copy to work in, which is the current folder."""
    copy = tmp_path / "work"
    shutil.copytree(named_files, copy)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return copy
