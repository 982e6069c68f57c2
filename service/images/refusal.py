"""The sentences with which a picture is refused, so that every format says the same thing in the same
words."""

from __future__ import annotations

from service.errors import Code, ImageError


def truncated(kind: str, what: str) -> ImageError:
    """The file ends too early; `what` says where ("inside its pixel data")."""
    return ImageError(
        Code.IMAGE_TRUNCATED,
        f"The {kind} picture is cut short: the file ends {what}. Send the whole file.",
        extra={"format": kind},
    )


def undecodable(kind: str, why: str) -> ImageError:
    """The file is damaged or breaks its format's rules; `why` continues "… cannot be decoded: "."""
    return ImageError(
        Code.IMAGE_UNDECODABLE,
        f"The {kind + ' ' if kind else ''}picture cannot be decoded: {why}.",
        extra={"format": kind},
    )


def unsupported(found: str, accepted: str) -> ImageError:
    """The bytes are something else than an accepted picture; `found` names it."""
    return ImageError(
        Code.UNSUPPORTED_MEDIA_TYPE,
        f"The bytes are {found}. Accepted pictures: {accepted}.",
        extra={"found": found},
    )
