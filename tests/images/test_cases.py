"""The collected problem cases: every picture input and what must become of it."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.images import DecodedImage, ImageError, decode_base64, decode_image, parse_data_url
from tests.images.files import quarters

CASES = Path(__file__).parents[1] / "cases"
ROWS = [json.loads(line) for line in (CASES / "manifest.jsonl").read_text("utf-8").splitlines()]
PICTURES = [row for row in ROWS if row["kind"] == "image"]
TEXTS = [row for row in ROWS if row["kind"] == "requests" and "decoded_sha256_of_bytes" in row["expected"]]
BOUNDED = [row for row in PICTURES if "max_rss_growth_mib" in row["expected"]]

# A fresh process, since memory that earlier pictures took would hide what this one takes.
MEASURE = """
import sys
from pathlib import Path
from service.images import DecodedImage, ImageError, decode_image
from tests.images.memory import peak_mib
good, hostile = (Path(each).read_bytes() for each in sys.argv[1:])
decode_image(good)
before = peak_mib()
try:
    decode_image(hostile)
except ImageError:
    pass
print(peak_mib() - before)
"""


def _name(row: dict[str, Any]) -> str:
    return str(row["file"])


def _read(row: dict[str, Any]) -> bytes:
    return (CASES / row["file"]).read_bytes()


def _outcome(data: bytes) -> tuple[DecodedImage | None, ImageError | None]:
    try:
        return decode_image(data), None
    except ImageError as error:
        return None, error


def test_the_cases_are_all_here() -> None:
    assert len(PICTURES) == 52
    assert len(TEXTS) == 8
    assert len(BOUNDED) == 4
    for row in ROWS:
        assert hashlib.sha256(_read(row)).hexdigest() == row["sha256"], row["file"]


@pytest.mark.parametrize("row", PICTURES, ids=_name)
def test_picture(row: dict[str, Any]) -> None:
    expected = row["expected"]
    started = time.process_time()
    picture, error = _outcome(_read(row))
    assert time.process_time() - started < expected.get("max_seconds", 2.0)
    if error is not None:
        assert error.status == expected["status"], error.detail
        assert str(error.code) == expected.get("error_code", str(error.code)), error.detail
        return
    assert picture is not None
    assert expected["status"] == 200
    assert "error_code" not in expected
    assert picture.pixels.dtype == np.uint8
    assert picture.pixels.shape == (picture.height, picture.width, 3)
    assert picture.pixels.flags.c_contiguous
    if "decoded_size" in expected:
        assert [picture.width, picture.height] == expected["decoded_size"]
    for probe in expected.get("probes", []):
        x, y = probe["xy"]
        got = picture.pixels[y, x].astype(int)
        assert np.abs(got - probe["rgb"]).max() <= probe["tol"], f"{got} at {x}, {y}"
    if "distinct_levels_min" in expected:
        assert len(np.unique(picture.pixels)) >= expected["distinct_levels_min"]


@pytest.mark.parametrize("row", BOUNDED, ids=_name)
def test_memory_stays_bounded(row: dict[str, Any]) -> None:
    good = CASES / "image" / "png_sent_as_jpeg.jpg"
    command = [sys.executable, "-c", MEASURE, str(good), str(CASES / row["file"])]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=CASES.parents[1])
    assert float(ran.stdout) < row["expected"]["max_rss_growth_mib"]


@pytest.mark.parametrize("row", TEXTS, ids=_name)
def test_text_gives_the_same_bytes_and_pixels(row: dict[str, Any]) -> None:
    data = decode_base64(json.loads(_read(row))["image_base64"])
    assert hashlib.sha256(data).hexdigest() == row["expected"]["decoded_sha256_of_bytes"]
    picture = decode_image(data)
    assert [picture.width, picture.height] == row["expected"]["decoded_size"]


def test_all_routes_give_the_same_pixels() -> None:
    data = (CASES / "image" / "exif_o6.jpg").read_bytes()
    standard, urlsafe = base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()
    assert "+" in standard
    assert "/" in standard
    wrapped = base64.encodebytes(data).decode().replace("\n", "\r\n")
    upright = decode_image(data).pixels
    for spelled in (standard, urlsafe, urlsafe.rstrip("="), wrapped, f"data:image/png;base64,{standard}"):
        assert np.array_equal(decode_image(decode_base64(spelled)).pixels, upright)
    assert np.array_equal(decode_image(parse_data_url(f"DATA:;x=1;Base64,{wrapped}")).pixels, upright)
    # The reference is the drawing itself, not another decode.
    expected = quarters(48, 64)
    inner = (slice(4, 28), slice(4, 20))
    assert np.abs(upright[inner].astype(int) - expected[inner]).max() <= 14


def test_equal_pixel_buffers_of_other_shapes_stay_apart() -> None:
    wide, tall = (
        decode_image((CASES / "image" / f"same_bytes_{size}.png").read_bytes()) for size in ("150x30", "30x150")
    )
    assert wide.pixels.tobytes() == tall.pixels.tobytes()
    assert wide.pixels.shape == (30, 150, 3)
    assert tall.pixels.shape == (150, 30, 3)


def test_a_refused_picture_does_not_hurt_the_next() -> None:
    good = (CASES / "image" / "png_sent_as_jpeg.jpg").read_bytes()
    for row in PICTURES:
        if row["expected"]["status"] != 200:
            with pytest.raises(ImageError):
                decode_image(_read(row))
            assert np.array_equal(decode_image(good).pixels, quarters())
