"""What decoding a picture will cost, learnt from those that were decoded."""

from __future__ import annotations

from service.scheduling import ServiceTime


class DecodeTime:
    """Seconds that decoding and preparing a picture takes, by its format and its size.

    A prior in seconds a pixel, corrected by what pictures of that format and size (to a factor of two) took.
    """

    _BASE_S = 0.5e-3
    _PER_PIXEL_S = 8e-9
    # A picture whose header does not tell its size: camera files have some four pixels a byte.
    _PIXELS_PER_BYTE = 4

    def __init__(self) -> None:
        self._factors: dict[tuple[str, int], ServiceTime] = {}
        self._usual = ServiceTime(1.0)

    def pixels(self, size: tuple[int, int] | None, encoded_bytes: int) -> int:
        """Pixels from the header's (width, height), else a guess from the bytes."""
        return size[0] * size[1] if size else encoded_bytes * self._PIXELS_PER_BYTE

    def expected(self, kind: str, pixels: int) -> float:
        """Seconds for a picture of this format and size."""
        factor = self._factors.get((kind, pixels.bit_length()), self._usual)
        return factor.seconds * self._prior(pixels)

    def observe(self, kind: str, pixels: int, seconds: float) -> None:
        """A picture took `seconds`."""
        ratio = seconds / self._prior(pixels)
        # The keys are few: formats times the sizes that the pixel limit allows.
        self._factors.setdefault((kind, pixels.bit_length()), ServiceTime(self._usual.seconds)).observe(ratio)
        self._usual.observe(ratio)

    def _prior(self, pixels: int) -> float:
        return self._BASE_S + self._PER_PIXEL_S * pixels
