"""The picture size inside a coded stream: HEVC parameter sets and AV1 sequence headers.

A HEIC or AVIF container states a size, and so does the stream in it, and the decoder allocates by the
stream's. A small claim outside must not hide a large one inside.
"""

from __future__ import annotations

from collections.abc import Iterator

_HEVC_SPS = 33
_AV1_SEQUENCE_HEADER = 1
# The interesting fields stand within this many bytes, scaling lists and the like come later.
_HEAD_BYTES = 512
# A still picture's stream has a few units, or one for each of its slices or tiles.
_MAX_UNITS = 1024


class StreamError(ValueError):
    """The stream's header cannot be read."""


class _Bits:
    """Reads big-endian bit fields."""

    def __init__(self, data: bytes) -> None:
        self._bits = int.from_bytes(data, "big")
        self._left = 8 * len(data)

    def read(self, count: int) -> int:
        self._left -= count
        if self._left < 0:
            raise StreamError("the header ends early")
        return (self._bits >> self._left) & ((1 << count) - 1)

    def exp_golomb(self) -> int:
        """ue(v) of HEVC, which is also uvlc() of AV1."""
        zeros = 0
        while not self.read(1):
            zeros += 1
            if zeros > 32:
                raise StreamError("a number in the header is too long")
        return (1 << zeros) - 1 + self.read(zeros)


def hevc_config_sizes(config: bytes) -> Iterator[tuple[int, int]]:
    """(width, height) of each parameter set in an `hvcC` box's body."""
    at, seen = 23, 0
    for _ in range(config[22] if len(config) > 22 else 0):
        if at + 3 > len(config):
            raise StreamError("the configuration ends early")
        kind, units = config[at] & 0x3F, int.from_bytes(config[at + 1 : at + 3], "big")
        at += 3
        seen += units
        if seen > _MAX_UNITS:
            raise StreamError("its stream is cut into thousands of pieces")
        for _ in range(units):
            length = int.from_bytes(config[at : at + 2], "big")
            if at + 2 + length > len(config):
                raise StreamError("the configuration ends early")
            if kind == _HEVC_SPS:
                yield _hevc_sps_size(config[at + 2 : at + 2 + length])
            at += 2 + length


def hevc_stream_sizes(stream: bytes, length_bytes: int) -> Iterator[tuple[int, int]]:
    """(width, height) of each parameter set within a stream of length-prefixed units."""
    at = seen = 0
    while at + length_bytes < len(stream):
        seen += 1
        if seen > _MAX_UNITS:
            raise StreamError("its stream is cut into thousands of pieces")
        length = int.from_bytes(stream[at : at + length_bytes], "big")
        at += length_bytes
        if (stream[at] >> 1) & 0x3F == _HEVC_SPS:
            yield _hevc_sps_size(stream[at : at + min(length, _HEAD_BYTES)])
        at += length


def _hevc_sps_size(unit: bytes) -> tuple[int, int]:
    """ITU-T H.265, 7.3.2.2.1 and 7.3.3."""
    bits = _Bits(unit[2:_HEAD_BYTES].replace(b"\0\0\x03", b"\0\0"))
    bits.read(4)
    sub_layers = bits.read(3)
    bits.read(1)
    bits.read(96)  # general profile, tier and level
    present = [(bits.read(1), bits.read(1)) for _ in range(sub_layers)]
    if sub_layers:
        bits.read(2 * (8 - sub_layers))
    for profile, level in present:
        bits.read(88 * profile + 8 * level)
    bits.exp_golomb()  # identifier
    if bits.exp_golomb() == 3:  # chroma format 4:4:4
        bits.read(1)
    return bits.exp_golomb(), bits.exp_golomb()


def av1_stream_sizes(stream: bytes) -> Iterator[tuple[int, int]]:
    """(width, height) of each sequence header within a run of AV1 units (OBUs)."""
    at = seen = 0
    while at < len(stream):
        seen += 1
        if seen > _MAX_UNITS:
            raise StreamError("its stream is cut into thousands of pieces")
        header = stream[at]
        at += 1 + (header >> 2 & 1)
        if header & 2:  # the unit has a size field
            length, at = _leb128(stream, at)
        else:
            length = len(stream) - at
        if (header >> 3) & 15 == _AV1_SEQUENCE_HEADER:
            yield _av1_sequence_size(stream[at : at + min(length, _HEAD_BYTES)])
        at += length


def _leb128(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 56, 7):
        if at >= len(data):
            raise StreamError("a unit's header ends early")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
    raise StreamError("a unit's size is too long")


def _av1_sequence_size(unit: bytes) -> tuple[int, int]:
    """AV1 Bitstream Specification, 5.5.1."""
    bits = _Bits(unit)
    bits.read(4)
    if bits.read(1):  # reduced still-picture header
        bits.read(5)
    else:
        _skip_av1_operating_points(bits)
    width_bits, height_bits = bits.read(4) + 1, bits.read(4) + 1
    return bits.read(width_bits) + 1, bits.read(height_bits) + 1


def _skip_av1_operating_points(bits: _Bits) -> None:
    model, delay_bits = 0, 0
    if bits.read(1):  # timing
        bits.read(64)
        if bits.read(1):
            bits.exp_golomb()
        model = bits.read(1)
        if model:
            delay_bits = bits.read(5) + 1
            bits.read(32 + 5 + 5)
    display_delay = bits.read(1)
    for _ in range(bits.read(5) + 1):
        bits.read(12)
        if bits.read(5) > 7:
            bits.read(1)
        if model and bits.read(1):
            bits.read(2 * delay_bits + 1)
        if display_delay and bits.read(1):
            bits.read(4)
