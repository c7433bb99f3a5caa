"""Saved pictures need nothing but themselves."""

import errno
import re
import xml.etree.ElementTree as ElementTree

import pytest

from cli.pictures.curve import Series, curve
from cli.pictures.export import save
from cli.pictures.heatmap import heatmap
from tinygrad_tf.errors import FailedError, InputError

PICTURE = curve([Series("loss", [(0, 4.0), (100, 1.0)])], width=60)


@pytest.mark.parametrize("ending", ["svg", "html", "txt"])
def test_a_saved_picture_is_self_contained_and_stable(tmp_path, ending):
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    for path in (first, second):
        save(PICTURE, path, title="loss of <runs/x> & {more}")
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text(encoding="utf-8")
    outside = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http" not in outside and "@import" not in outside and "@font-face" not in outside
    assert "loss" in text and re.search("[⠀-⣿]", text)
    if ending != "txt":
        assert "monospace" in text and "<runs/x>" not in text


def test_an_svg_is_well_formed_and_a_text_has_no_escapes(tmp_path):
    save(heatmap([[0.0, 1.0]]), tmp_path / "a.svg", title="a < b")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    save(heatmap([[0.0, 1.0]]), tmp_path / "a.txt", title="a")
    assert "\x1b" not in (tmp_path / "a.txt").read_text(encoding="utf-8")


def test_two_pictures_on_a_page_do_not_share_styles(tmp_path):
    save(PICTURE, tmp_path / "a.svg", title="tt inspect a")
    save(PICTURE, tmp_path / "b.svg", title="tt inspect b")
    classes = [set(re.findall(r"\.([\w-]+) \{", (tmp_path / f"{n}.svg").read_text())) for n in "ab"]
    assert classes[0] and not classes[0] & classes[1]


def test_nothing_is_overwritten_without_force(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="exists already; name another file or add --force"):
        save(PICTURE, path, title="x")
    assert path.read_text(encoding="utf-8") == "mine"
    save(PICTURE, path, title="x", force=True)
    assert "loss" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["a.png", "a"])
def test_only_known_endings(tmp_path, name):
    with pytest.raises(InputError, match=r"\.svg, \.html, \.txt"):
        save(PICTURE, tmp_path / name, title="x")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_in_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    path = tmp_path / "a.svg"
    with pytest.raises(FailedError, match=r"cannot write .*a\.svg: the disk is full"):
        save(PICTURE, path, title="x")
    assert not list(tmp_path.iterdir())
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(FailedError, match="nothing that was there is changed"):
        save(PICTURE, path, title="x", force=True)
    assert [p.read_text(encoding="utf-8") for p in tmp_path.iterdir()] == ["mine"]
