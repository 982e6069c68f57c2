"""What a question asks for: the kinds that wordings come in."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a question asks for."""

    COLOR = "color"  # the colour of the only shape (of that name)
    ITS_COLOR = "its_color"  # the colour of "it", the only shape of the picture
    SHAPE = "shape"  # the name of the only shape
    SHAPE_OF_COLOR = "shape_of_color"  # the name of the only shape of that colour
    COLOR_OF_EXTREME = "color_of_extreme"  # the colour of the biggest or smallest shape
    SHAPE_OF_EXTREME = "shape_of_extreme"  # its name
    PRESENT = "present"  # yes/no: is there such a thing
    ABSENT = "absent"  # yes/no, negated: is there no such thing
    IS_COLOR = "is_color"  # yes/no: has the only shape (of that name) this colour
    IS_NOT_COLOR = "is_not_color"
    IT_IS_COLOR = "it_is_color"  # yes/no about "it"
    IT_IS_SHAPE = "it_is_shape"
    COUNT = "count"  # how many such things
    SIDE = "side"  # left or right: on which side of another shape
    IS_ON_SIDE = "is_on_side"  # yes/no
    OBJECT_PRESENT = "object_present"  # yes/no about an everyday object: always no, these are drawings of shapes
    OFF_TOPIC = "off_topic"  # nothing that a drawing of shapes could answer
    OBJECT_ATTRIBUTE = "object_attribute"  # takes for granted an object that is not there
