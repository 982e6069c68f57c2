"""Bytes to an upright RGB picture.

One decoder serves every route: upload, base64, data URL, address and batch give the same pixels or the same
refusal.
"""

from __future__ import annotations

from service.errors import ImageError
from service.images.decode import DecodedImage, decode_image
from service.images.limits import DEFAULT_LIMITS, ImageLimits
from service.images.sniff import ACCEPTED_FORMATS

__all__ = ["ACCEPTED_FORMATS", "DEFAULT_LIMITS", "DecodedImage", "ImageError", "ImageLimits", "decode_image"]
