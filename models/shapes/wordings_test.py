"""Wordings of the test split; none is a training or calibration wording. For the slots see `phrasing`."""

from __future__ import annotations

from models.shapes.kinds import Kind

TEMPLATES: dict[Kind, tuple[str, ...]] = {
    Kind.COLOR: (
        "which color does the {noun} have?",
        "what color is the {noun} here?",
        "what color is this {noun}?",
        "the {noun} in the picture is what color?",
    ),
    Kind.SHAPE: (
        "what shape is here?",
        "which shape do you see in the picture?",
        "what shape is there in the image?",
        "what kind of shape is this?",
    ),
    Kind.SHAPE_OF_COLOR: (
        "what shape is the {color} one?",
        "what shape is the {color} object?",
        "the {color} object is what shape?",
    ),
    Kind.PRESENT: (
        "is {a} here?",
        "does this image show {a}?",
        "do we see {a} in this picture?",
        "are there any {things} here?",
        "is any {thing} present?",
    ),
    Kind.ABSENT: (
        "does this picture not contain {a}?",
        "is there not any {thing} here?",
        "is no {thing} visible?",
        "does the image show no {thing}?",
        "are no {things} present?",
    ),
    Kind.IS_COLOR: ("is this {noun} {color}?", "does the {noun} here have the color {color}?"),
    Kind.IS_NOT_COLOR: ("is the {noun} here not {color}?",),
    Kind.COUNT: (
        "how many {things} are here?",
        "how many {things} does the image contain?",
        "what is the number of {things} in the picture?",
    ),
    Kind.ITS_COLOR: ("what is the color of it?", "what color does it have?", "it is what color?"),
    Kind.COLOR_OF_EXTREME: (
        "what color is the {size} shape here?",
        "which color does the {size} shape have in this picture?",
        "the {size} shape in the image is what color?",
    ),
    Kind.SHAPE_OF_EXTREME: (
        "what shape is the {size} shape here?",
        "which is the {size} shape?",
        "which shape in this picture is the {size}?",
    ),
    Kind.IT_IS_COLOR: ("is it {color} here?", "is its colour {color}?"),
    Kind.IT_IS_SHAPE: ("is this here a {name}?", "is the shape in the picture a {name}?"),
    Kind.SIDE: (
        "is the {one} here left or right of the {other}?",
        "is the {one} in the picture to the left or right of the {other}?",
        "to which side of the {other} is the {one}?",
    ),
    Kind.IS_ON_SIDE: (
        "is the {one} here to the {side} of the {other}?",
        "does this image show the {one} {side} of the {other}?",
    ),
    Kind.OBJECT_PRESENT: ("does this image show a {object}?", "is there a {object} here?"),
    Kind.OFF_TOPIC: (
        "what is the name of the street?",
        "how old is this child?",
        "what does the sign in the window say?",
        "who painted this?",
        "is the oven turned off?",
        "what is the total on the receipt?",
        "what medicine is this?",
        "is the train late?",
        "what time does the show start?",
        "is the water cold?",
        "where can i buy this?",
        "what song is this?",
        "what does the screen show me?",
        "is she angry?",
        "how fast is it going?",
    ),
    Kind.OBJECT_ATTRIBUTE: (
        "what color is this {object}?",
        "which shape is the {object}?",
        "is the {object} full?",
        "what is under the {object}?",
        "how much is the {object}?",
    ),
}

# Everyday objects that no drawing here shows.
# fmt: off
OBJECTS: tuple[str, ...] = (
    "hamster", "monkey", "goat", "turtle", "skateboard", "helmet", "sweater", "jeans", "boot", "necklace",
    "teapot", "microwave", "toaster", "vase", "desk", "drawer", "radio", "camera", "printer", "bucket",
    "broom", "lemon", "grape", "potato", "soup", "burger", "rocket", "ferry", "lighthouse", "castle",
)
# fmt: on
