"""A picture file, read and decoded."""

from __future__ import annotations

from pathlib import Path

from service.errors import DataError, ImageError
from service.images.decode import DecodedImage, decode_image


def read_picture(path: Path) -> tuple[DecodedImage, bytes]:
    """The picture in a file, and the file's bytes.

    Raises:
        DataError: the file cannot be read, or its content is refused as a picture.
    """
    try:
        data = path.read_bytes()
        return decode_image(data), data
    except OSError as error:
        raise DataError(path, f"it cannot be read: {error.strerror}") from error
    except ImageError as error:
        raise DataError(path, error.detail) from error
