"""How questions are worded: templates by kind of question, in groups that never share a wording.

Slots: {a} a thing with its article ("a red shape"), {thing} and {things} without ("red shape", "red shapes"),
{noun} "shape" or the name of one, {color} a colour, {object} an everyday object that no drawing here shows.
`EASY` holds easy-VQA's own templates; they count as training wordings.
"""

from __future__ import annotations

from enum import StrEnum


class Group(StrEnum):
    """Whose wordings: a calibration or test question is phrased as no training question ever is."""

    TRAIN = "train"
    CALIBRATION = "calibration"
    TEST = "test"


class Kind(StrEnum):
    """What a question asks for."""

    COLOR = "color"  # the colour of the only shape (of that name)
    SHAPE = "shape"  # the name of the only shape
    SHAPE_OF_COLOR = "shape_of_color"  # the name of the only shape of that colour
    PRESENT = "present"  # yes/no: is there such a thing
    ABSENT = "absent"  # yes/no, negated: is there no such thing
    IS_COLOR = "is_color"  # yes/no: has the only shape (of that name) this colour
    IS_NOT_COLOR = "is_not_color"
    COUNT = "count"  # how many such things
    OBJECT_PRESENT = "object_present"  # yes/no about an everyday object: always no, these are drawings of shapes
    OFF_TOPIC = "off_topic"  # nothing that a drawing of shapes could answer
    OBJECT_ATTRIBUTE = "object_attribute"  # takes for granted an object that is not there


EASY: dict[Kind, tuple[str, ...]] = {
    Kind.COLOR: ("what color is the {noun}?", "what is the color of the {noun}?"),
    Kind.SHAPE: ("what shape is in the image?", "what shape does the image contain?", "what shape is present?"),
    Kind.SHAPE_OF_COLOR: ("what is the {color} shape?",),
    Kind.PRESENT: ("is there {a}?", "is there {a} in the image?", "does the image contain {a}?", "is {a} present?"),
    Kind.ABSENT: (
        "is there not {a}?",
        "is there not {a} in the image?",
        "does the image not contain {a}?",
        "is no {thing} present?",
    ),
}

_TRAIN: dict[Kind, tuple[str, ...]] = {
    Kind.COLOR: (
        "what colour is the {noun}?",
        "what is the colour of the {noun}?",
        "which color is the {noun}?",
        "what color does the {noun} have?",
        "what color is the {noun} in the image?",
        "what is the color of the {noun} in the picture?",
        "the {noun} is what color?",
        "tell me the color of the {noun}.",
        "in what colour is the {noun} drawn?",
        "which colour has the {noun} here?",
    ),
    Kind.SHAPE: (
        "which shape is in the picture?",
        "what shape is this?",
        "what shape do you see?",
        "what kind of shape is there?",
        "what is the shape in the image?",
        "what shape is shown?",
        "which shape does the picture contain?",
        "what shape can you see in the image?",
        "name the shape.",
        "what is shown in the picture?",
        "what is this shape called here?",
    ),
    Kind.SHAPE_OF_COLOR: (
        "what shape is the {color} shape?",
        "what shape is {color}?",
        "which shape is {color}?",
        "what kind of shape is the {color} one?",
        "what is the shape of the {color} object?",
        "what is the {color} object?",
        "the {color} shape is a what?",
        "which shape is the {color} object in the image?",
    ),
    Kind.PRESENT: (
        "is there {a} in the picture?",
        "is there {a} here?",
        "can you see {a}?",
        "can you see {a} in the image?",
        "do you see {a} in the picture?",
        "does this picture contain {a}?",
        "does the picture show {a}?",
        "does this image have {a}?",
        "is {a} visible?",
        "is {a} in the image?",
        "is there any {thing} in the image?",
        "are there any {things}?",
        "are there any {things} in the picture?",
        "is {a} shown?",
        "do we see {a}?",
        "can {a} be seen in the picture?",
    ),
    Kind.ABSENT: (
        "is there no {thing}?",
        "is there no {thing} in the picture?",
        "does the picture not show {a}?",
        "are there no {things}?",
        "are there no {things} in the image?",
        "is {a} missing?",
        "is {a} missing from the image?",
        "does this image have no {thing}?",
        "is {a} not visible?",
        "is {a} not in the image?",
        "is there not any {thing}?",
        "is no {thing} in the picture?",
        "does this picture contain no {thing}?",
        "is {a} not shown here?",
    ),
    Kind.IS_COLOR: (
        "is the {noun} {color}?",
        "is the {noun} in the image {color}?",
        "is the color of the {noun} {color}?",
        "does the {noun} have the color {color}?",
        "is this a {color} {noun}?",
    ),
    Kind.IS_NOT_COLOR: (
        "is the {noun} not {color}?",
        "is the {noun} in the picture not {color}?",
        "is the colour of the {noun} not {color}?",
    ),
    Kind.COUNT: (
        "how many {things} are there?",
        "how many {things} are in the image?",
        "how many {things} do you see?",
        "how many {things} does the picture contain?",
        "how many {things} can you see in the picture?",
        "how many {things}?",
        "what is the number of {things}?",
        "count the {things}.",
        "how many {things} are shown here?",
    ),
    Kind.OBJECT_PRESENT: (
        "is there a {object}?",
        "is there a {object} in the image?",
        "can you see a {object}?",
        "does the picture show a {object}?",
    ),
    Kind.OFF_TOPIC: (
        "what is written on the sign?",
        "how old is the person?",
        "what does the label say?",
        "what time is it?",
        "who is in the picture?",
        "what brand is this?",
        "what is the price?",
        "what is the expiration date?",
        "is it raining?",
        "what kind of food is this?",
        "what does this say?",
        "which button do i press?",
        "what is the name of this product?",
        "what is on the screen?",
        "what room is this?",
        "what is the weather like?",
        "where is this?",
        "where was this photo taken?",
        "what are they doing?",
        "why is she smiling?",
        "who made this?",
        "when does the store open?",
        "what is the phone number?",
        "what is his name?",
        "what language is this?",
        "how much does it cost?",
        "is it day or night?",
        "what flavor is this?",
        "what size is it?",
        "how do i turn this on?",
        "what is the temperature?",
        "is this milk still good?",
        "what is the title?",
        "what sport is being played?",
        "which bus is this?",
        "what is the address?",
        "who is the president?",
        "what year is it?",
        "is he happy?",
        "what is she wearing?",
        "what is the man holding?",
        "where are the keys?",
        "how heavy is it?",
        "what material is it made of?",
        "does it taste good?",
        "hello",
        "what does the fox say?",
        "how many calories does this have?",
        "how many people live here?",
        "what is behind it?",
    ),
    Kind.OBJECT_ATTRIBUTE: (
        "what color is the {object}?",
        "what is the color of the {object}?",
        "what colour is my {object}?",
        "what shape is the {object}?",
        "is the {object} open?",
        "where is the {object}?",
        "how old is the {object}?",
        "what is the {object} doing?",
        "what is on the {object}?",
        "who is holding the {object}?",
        "is this {object} clean?",
    ),
}

_CALIBRATION: dict[Kind, tuple[str, ...]] = {
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
    Kind.IS_COLOR: ("is the colour of the {noun} {color}?", "is the {noun} in the picture {color}?"),
    Kind.IS_NOT_COLOR: ("is the {noun} in the image not {color}?",),
    Kind.COUNT: (
        "how many {things} are in the picture?",
        "how many {things} are visible?",
        "count the {things} in the image.",
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

_TEST: dict[Kind, tuple[str, ...]] = {
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

TEMPLATES: dict[Group, dict[Kind, tuple[str, ...]]] = {
    Group.TRAIN: _TRAIN,
    Group.CALIBRATION: _CALIBRATION,
    Group.TEST: _TEST,
}

# Everyday objects that no drawing here shows.
# fmt: off
OBJECTS: dict[Group, tuple[str, ...]] = {
    Group.TRAIN: (
        "dog", "cat", "car", "house", "tree", "shirt", "table", "chair", "person", "man", "woman", "child",
        "bus", "train", "bike", "boat", "book", "phone", "cup", "bottle", "plate", "door", "window", "bed",
        "sofa", "lamp", "clock", "shoe", "hat", "bag", "pen", "key", "horse", "cow", "sheep", "bird", "fish",
        "flower", "apple", "banana", "orange", "cake", "pizza", "sandwich", "bread", "egg", "glass", "knife",
        "fork", "spoon", "bowl", "sink", "oven", "television", "laptop", "screen", "mouse", "keyboard",
        "wall", "floor", "street", "road", "sign", "truck", "plane", "sky", "sun", "moon", "cloud", "river",
        "mountain", "beach", "umbrella", "kite", "ball", "bear", "elephant", "zebra", "giraffe", "ring",
        "coat", "dress", "sock", "glove", "scarf", "jar", "can", "box", "card", "toy", "doll", "guitar",
        "drum", "carpet", "curtain", "fence", "bench", "bridge", "tower", "church", "garden", "grass", "leaf",
        "rock", "sand", "snow", "towel", "soap", "brush",
    ),
    Group.CALIBRATION: (
        "couch", "jacket", "tie", "backpack", "wallet", "mug", "kettle", "stove", "fridge", "mirror",
        "pillow", "blanket", "rabbit", "duck", "tiger", "lion", "tomato", "carrot", "onion", "cheese",
        "cookie", "taxi", "scooter", "tractor", "statue", "balcony", "roof", "pencil", "notebook", "ladder",
    ),
    Group.TEST: (
        "hamster", "monkey", "goat", "turtle", "skateboard", "helmet", "sweater", "jeans", "boot", "necklace",
        "teapot", "microwave", "toaster", "vase", "desk", "drawer", "radio", "camera", "printer", "bucket",
        "broom", "lemon", "grape", "potato", "soup", "burger", "rocket", "ferry", "lighthouse", "castle",
    ),
}
# fmt: on
