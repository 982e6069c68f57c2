"""Decoders may raise anything; our own faults must not hide behind that."""

from __future__ import annotations

import logging
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageFile

from service.images import ImageError, ImageLimits, colour, decode_image, raster
from service.images.formats import png
from service.images.sniff import Format
from tests.images.files import encoded, quarters


@pytest.mark.parametrize(
    "error",
    [
        OSError("broken"),
        SyntaxError("broken"),
        ValueError("broken"),
        RuntimeError("broken"),
        KeyError("broken"),
        IndexError("broken"),
        TypeError("broken"),
        AttributeError("broken"),
        ZeroDivisionError("broken"),
        OverflowError("broken"),
        AssertionError("broken"),
        UnicodeDecodeError("ascii", b"\xff", 0, 1, "broken"),
        struct.error("broken"),
        zlib.error("broken"),
        Image.DecompressionBombError("broken"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_decoder_raises_is_undecodable(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Image, "open", fail)
    with pytest.raises(ImageError) as caught:
        decode_image(encoded(quarters(), "PNG"))
    assert caught.value.code == "image_undecodable"
    assert caught.value.__cause__ is error
    assert "broken" not in caught.value.detail


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EOFError("end"), "image_truncated"),
        (OSError("image file is truncated (3 bytes not processed)"), "image_truncated"),
        (MemoryError(), "image_too_large"),
    ],
)
def test_what_a_decoder_raises_has_its_code(monkeypatch: pytest.MonkeyPatch, error: Exception, code: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(ImageFile.ImageFile, "load", fail)
    with pytest.raises(ImageError) as caught:
        decode_image(encoded(quarters(), "BMP"))
    assert caught.value.code == code


def test_our_own_faults_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(png, "_transparent", fault)
    with pytest.raises(KeyError, match="a fault of ours"):
        decode_image(encoded(quarters(), "PNG"))


def test_our_own_faults_surface_behind_the_decoder_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(colour, "to_srgb", fault)
    with pytest.raises(ValueError, match="a fault of ours"):
        decode_image(encoded(quarters(), "PNG"))


def test_a_lack_of_memory_behind_the_decoder_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(colour, "to_srgb", fail)
    with pytest.raises(ImageError) as caught:
        decode_image(encoded(quarters(), "PNG"))
    assert caught.value.code == "image_too_large"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_stop_passes_through(monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]) -> None:
    def fail(*_: object, **__: object) -> None:
        raise stop

    monkeypatch.setattr(Image, "open", fail)
    with pytest.raises(stop):
        decode_image(encoded(quarters(), "PNG"))


def test_only_the_formats_own_plugin_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    original = Image.open

    def record(fp: object, mode: str = "r", formats: object = None) -> Image.Image:
        asked.append(formats)
        return original(fp, mode, formats)

    monkeypatch.setattr(Image, "open", record)
    for kind in ("PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"):
        decode_image(encoded(quarters(), kind))
        assert asked[-1] == (kind,)
    inks = Image.fromarray(quarters()).convert("CMYK")
    decode_image(encoded(inks, "JPEG"))
    assert asked[-1] == ("JPEG",)
    count = len(asked)
    decode_image(encoded(quarters(), "HEIC"))
    decode_image(encoded(quarters(), "JPEG"))
    assert len(asked) == count, "HEIC and most JPEGs go to libraries of their own"
    assert "HEIF" not in Image.OPEN


def test_decoders_are_set_up_as_promised() -> None:
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False
    assert Image.MAX_IMAGE_PIXELS is None, "the limit is ours, and exact"
    assert logging.getLogger("PIL").level == logging.CRITICAL


def test_a_stream_larger_than_its_header_is_refused_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def larger(*_: object) -> tuple[Image.Image, int]:
        return Image.new("RGB", (100, 100)), 1

    monkeypatch.setattr("service.images.decode.rasterise", larger)
    with pytest.raises(ImageError) as caught:
        decode_image(encoded(quarters(8, 8), "PNG"), limits=ImageLimits(max_pixels=64))
    assert caught.value.code == "image_too_large"


def test_rasterise_gives_the_decoders_own_mode() -> None:
    picture, turn = raster.rasterise(Format.PNG, encoded(Image.new("LA", (3, 2), (7, 9)), "PNG"))
    assert (picture.mode, picture.size, turn) == ("LA", (3, 2), 1)
    assert np.asarray(picture)[0, 0].tolist() == [7, 9]
