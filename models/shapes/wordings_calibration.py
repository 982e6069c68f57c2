"""Wordings of calibration; none is a training or test wording. For the slots see `phrasing`."""

from __future__ import annotations

from models.shapes.kinds import Kind

TEMPLATES: dict[Kind, tuple[str, ...]] = {
    Kind.COLOR: (
        "what is the color of the {noun} in the image?",
        "which colour is the {noun}?",
        "what colour does the {noun} have?",
        "tell me the colour of the {noun} in the picture.",
    ),
    Kind.SHAPE: (
        "which shape is present?",
        "what kind of shape is in the image?",
        "what shape does the picture show?",
        "name the shape in the picture.",
    ),
    Kind.SHAPE_OF_COLOR: (
        "which shape is the {color} one?",
        "what kind of shape is {color}?",
        "what is the {color} shape in the image?",
    ),
    Kind.PRESENT: (
        "does the picture have {a}?",
        "can {a} be seen?",
        "is {a} shown in the image?",
        "are any {things} visible?",
        "do you see {a}?",
    ),
    Kind.ABSENT: (
        "does the picture contain no {thing}?",
        "is there no {thing} here?",
        "is {a} not present?",
        "is {a} missing from the picture?",
        "is there not {a} in the picture?",
    ),
    Kind.IS_COLOR: ("does the {noun} look {color}?", "is the {noun} in the picture {color}?"),
    Kind.IS_NOT_COLOR: ("is the {noun} in the image not {color}?",),
    Kind.COUNT: (
        "how many {things} are in the picture?",
        "how many {things} are visible?",
        "count the {things} in the image.",
    ),
    Kind.ITS_COLOR: ("which colour is it?", "what colour does it have?", "what is the colour of it?"),
    Kind.COLOR_OF_EXTREME: (
        "which colour does the {size} shape have?",
        "what is the color of the {size} shape in the picture?",
        "tell me the color of the {size} shape.",
    ),
    Kind.SHAPE_OF_EXTREME: (
        "what kind of shape is the {size} one?",
        "which shape is the {size} one in the image?",
        "name the {size} shape.",
    ),
    Kind.IT_IS_COLOR: ("is it {color} in the picture?", "does it look {color}?"),
    Kind.IT_IS_SHAPE: ("is this shape a {name}?", "would you call it a {name}?"),
    Kind.SIDE: (
        "do you see the {one} left or right of the {other}?",
        "where is the {one}, left or right of the {other}?",
        "is the {one} at the left or at the right of the {other}?",
    ),
    Kind.IS_ON_SIDE: (
        "do you see the {one} to the {side} of the {other}?",
        "is the {one} in the image {side} of the {other}?",
    ),
    Kind.OBJECT_PRESENT: ("is there a {object} in the picture?", "do you see a {object}?"),
    Kind.OFF_TOPIC: (
        "how tall is the woman?",
        "what is the title of the book?",
        "is the person asleep?",
        "what does the bottle say?",
        "can you read this?",
        "what number is on the shirt?",
        "which city is this?",
        "what is in the box?",
        "why are they running?",
        "what is the man looking at?",
        "is this safe to eat?",
        "how long should i cook this?",
        "what channel is on?",
        "what kind of animal is this?",
        "whose birthday is it?",
    ),
    Kind.OBJECT_ATTRIBUTE: (
        "which color is the {object}?",
        "what is the shape of the {object}?",
        "is the {object} broken?",
        "what is in the {object}?",
        "where did you put the {object}?",
    ),
}

# Everyday objects that no drawing here shows.
# fmt: off
OBJECTS: tuple[str, ...] = (
    "couch", "jacket", "tie", "backpack", "wallet", "mug", "kettle", "stove", "fridge", "mirror",
    "pillow", "blanket", "rabbit", "duck", "tiger", "lion", "tomato", "carrot", "onion", "cheese",
    "cookie", "taxi", "scooter", "tractor", "statue", "balcony", "roof", "pencil", "notebook", "ladder",
)
# fmt: on
