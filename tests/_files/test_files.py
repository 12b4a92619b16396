import os
import sys

import pytest

from unshuffle._files.paths import check_regular_file
from unshuffle.images import read_features
from unshuffle.layout import Positions
from unshuffle.matching import Matches

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")


def test_a_plain_file_is_accepted_through_links(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    assert check_regular_file(tmp_path / "a.txt", "`path`") == tmp_path / "a.txt"
    if sys.platform != "win32":
        (tmp_path / "b.txt").symlink_to("a.txt")
        assert check_regular_file(str(tmp_path / "b.txt"), "`path`") == tmp_path / "b.txt"


def test_missing_files_and_folders_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(ValueError, match=r"There is no file .*none\.txt \(--frozen\)\. Check"):
        check_regular_file(tmp_path / "none.txt", "--frozen")
    with pytest.raises(ValueError, match="There is no file"):
        check_regular_file(tmp_path / "a.txt" / "b.txt", "--frozen")
    with pytest.raises(ValueError, match=r"\(A\) is a folder\. Give a file"):
        check_regular_file(tmp_path, "A")
    with pytest.raises(ValueError, match=r"A is .* file names cannot contain NUL"):
        check_regular_file("a\0b", "A")


@needs_links
def test_pipes_devices_and_circles_of_links_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    for name in ("pipe.csv", "zero.csv"):
        with pytest.raises(ValueError, match=rf"{name} \(A\) leads to a device or a pipe"):
            check_regular_file(tmp_path / name, "A")
    with pytest.raises(ValueError, match=r"loop\.csv \(A\) cannot be opened: Too many levels"):
        check_regular_file(tmp_path / "loop.csv", "A")


@needs_links
def test_nothing_is_loaded_from_a_device_or_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "zero.npy").symlink_to("/dev/zero")
    for load in (Matches.load, Positions.load):
        for name in ("pipe.csv", "zero.json"):
            with pytest.raises(ValueError, match="leads to a device or a pipe"):
                load(tmp_path / name)
    with pytest.raises(ValueError, match="leads to a device or a pipe"):
        read_features(tmp_path / "zero.npy", 3)
