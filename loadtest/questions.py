"""Whole requests as bytes, and question texts that never repeat, so that no cache can answer."""

from __future__ import annotations

COLOURS = ("red", "blue", "green", "yellow", "brown", "black", "gray", "teal")
SHAPES = ("circle", "rectangle", "triangle")
_TEMPLATES = (
    "what color is the {shape}? ({number})",
    "is there a {color} {shape}? ({number})",
    "what shape is {color}? ({number})",
    "how many {color} shapes are there in picture {number}?",
    "does the picture with the number {number} not contain a {color} {shape}?",
)
# Never part of a picture, so that the body needs no scan.
BOUNDARY = "----vqa-load-5f0c1b7e9a2d"


def question(number: int) -> str:
    """A question of its own for each number, in one of five lengths."""
    template = _TEMPLATES[number % len(_TEMPLATES)]
    return template.format(color=COLOURS[number % 8], shape=SHAPES[number % 3], number=number)


def post(host: str, picture: bytes, path: str = "/answer", /, **fields: object) -> bytes:
    """A multipart request: the picture and the other keys of the contract as fields."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    parts.append(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="picture"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    before, after = "".join(parts).encode(), f"\r\n--{BOUNDARY}--\r\n".encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}\r\n"
        f"Content-Length: {len(before) + len(picture) + len(after)}\r\n\r\n"
    )
    return b"".join((head.encode(), before, picture, after))


def get(host: str, path: str) -> bytes:
    """A GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
