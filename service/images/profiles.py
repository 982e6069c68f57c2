"""Embedded colour profiles: pictures are converted to sRGB, and a profile that cannot be used is ignored.

A picture tagged Display P3 or Adobe RGB looks dull when its numbers are taken for sRGB; one with a broken
profile is still a picture.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

MAX_PROFILE_BYTES = 4 * 2**20
_CACHED = 32
_MAX_TAGS = 100  # the colour library takes no more
# Profiles that differ from sRGB by no more than rounding are not applied: most photographs carry one of
# these.
_SAME_LEVELS = 2
_COLLAPSED_LEVELS = 32
_SPACES = {"RGB": "RGB", "L": "GRAY", "CMYK": "CMYK", "LAB": "Lab"}

_SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
_LAB = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB"))

# What a profile asks for: a transform, or None where it is unusable or says sRGB.
_cache: OrderedDict[tuple[bytes, str], ImageCms.ImageCmsTransform | None] = OrderedDict()
_lock = threading.Lock()


def to_srgb(picture: Image.Image, icc: bytes | None) -> Image.Image:
    """`picture` (mode L, RGB, CMYK or LAB) in mode RGB and sRGB, with perceptual intent.

    `icc` is its embedded profile; None, a damaged or oversized one, or one for another kind of picture counts
    as none. Without a profile grey and RGB are taken for sRGB and CMYK for uncalibrated ink.
    """
    transform = _transform(picture.mode, icc)
    if transform is not None:
        try:
            return ImageCms.applyTransform(picture, transform)  # type: ignore[return-value]
        except (ImageCms.PyCMSError, OSError, ValueError):
            pass  # a profile is never a reason to refuse a picture
    return picture if picture.mode == "RGB" else picture.convert("RGB")


def _transform(mode: str, icc: bytes | None) -> ImageCms.ImageCmsTransform | None:
    if mode == "LAB":
        key = (b"", mode)
    elif icc and len(icc) <= MAX_PROFILE_BYTES and icc[36:40] == b"acsp":
        key = (hashlib.sha256(icc).digest(), mode)
    else:
        return None
    with _lock:
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
    transform = _build(mode, icc)
    with _lock:
        _cache[key] = transform
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)
    return transform


def _build(mode: str, icc: bytes | None) -> ImageCms.ImageCmsTransform | None:
    try:
        profile = _LAB if mode == "LAB" else ImageCms.ImageCmsProfile(io.BytesIO(_without_float_tags(icc or b"")))
        if profile.profile.xcolor_space.strip() != _SPACES.get(mode, mode).strip() and mode != "LAB":
            return None
        transform = ImageCms.buildTransform(profile, _SRGB, mode, "RGB", ImageCms.Intent.PERCEPTUAL)
        if mode != "RGB":
            return transform
        moved = _on_lattice(transform)
        return None if _is_srgb(moved) or _collapses(moved) else transform
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError, MemoryError):
        return None


def _without_float_tags(icc: bytes) -> bytes:
    """The profile without its D2B tags.

    They hold any number of processing steps, and a small file with very many would keep a thread busy for minutes.
    Profiles in use have other tags beside them, which serve as well.
    """
    out = bytearray(icc)
    count = min(int.from_bytes(icc[128:132], "big"), _MAX_TAGS)
    for at in range(132, min(132 + 12 * count, len(icc) - 3), 12):
        if icc[at : at + 3] == b"D2B":
            out[at : at + 4] = b"none"
    return bytes(out)


def _lattice() -> NDArray[np.uint8]:
    """9 x 9 x 9 colours from black to white as a picture, 27 x 27 x 3."""
    levels = np.linspace(0, 255, 9).astype(np.uint8)
    return np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(27, 27, 3)


def _on_lattice(transform: ImageCms.ImageCmsTransform) -> NDArray[np.uint8]:
    return np.asarray(ImageCms.applyTransform(Image.fromarray(_lattice()), transform))


def _is_srgb(moved: NDArray[np.uint8]) -> bool:
    """Whether the transform leaves a lattice of colours where it is."""
    return int(np.abs(moved.astype(np.int16) - _lattice()).max()) <= _SAME_LEVELS


def _collapses(moved: NDArray[np.uint8]) -> bool:
    """Whether the transform makes nearly one colour of all: the profile is well formed and says nothing."""
    return int(np.ptp(moved.reshape(-1, 3), axis=0).max()) <= _COLLAPSED_LEVELS
