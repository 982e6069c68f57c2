"""How big a picture may be: the limits that hold whatever the format and the route."""

from __future__ import annotations

from dataclasses import dataclass

from service.errors import Code, ImageError

MIB = 2**20


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """Bounds on one picture.

    Args:
        max_bytes: bytes of the file as sent.
        max_pixels: width x height of the picture that its header announces.
        max_edge: pixels of its longer edge.
    """

    # The largest phone cameras give 64-megapixel pictures, 9248 x 6936 or 9216 x 6912; 64 Mi pixels lets them
    # pass. 108- and 200-megapixel modes exist, but a decoded picture of that size takes about a gigabyte of
    # memory and both kinds of model see less than two of its megapixels.
    max_pixels: int = 64 * MIB
    max_bytes: int = 20 * MIB
    # A decoded picture takes memory for each of its lines, too, and is copied on its way: 1 x 67,000,000 pixels, a file
    # of 130 kB, took 2.2 GB.
    max_edge: int = 1_000_000

    def check_bytes(self, size: int) -> None:
        """Refuse a file of `size` bytes that is over the limit.

        Raises:
            ImageError: `image_too_large`.
        """
        if size > self.max_bytes:
            raise ImageError(
                Code.IMAGE_TOO_LARGE,
                f"The picture has {size:,} bytes; at most {self.max_bytes:,} are accepted. Send a smaller copy.",
                extra={"bytes": size, "max_bytes": self.max_bytes},
            )

    def check_pixels(self, width: int, height: int) -> None:
        """Refuse announced dimensions that are over the limit; called before any pixel buffer exists.

        Raises:
            ImageError: `image_too_large`.
        """
        if width * height > self.max_pixels:
            raise ImageError(
                Code.IMAGE_TOO_LARGE,
                f"The picture announces {width} x {height} = {width * height:,} pixels; "
                f"at most {self.max_pixels:,} are accepted. Send a smaller copy.",
                extra={"width": width, "height": height, "max_pixels": self.max_pixels},
            )
        if max(width, height) > self.max_edge:
            raise ImageError(
                Code.IMAGE_TOO_LARGE,
                f"The picture announces {width} x {height} pixels; an edge may have {self.max_edge:,}. "
                "Send a smaller copy.",
                extra={"width": width, "height": height, "max_edge": self.max_edge},
            )


DEFAULT_LIMITS = ImageLimits()
