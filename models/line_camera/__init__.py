"""A made-up line camera: jars that pass under it, with a seal that is whole, broken or missing.

The example of training on one's own pictures: `python -m models.line_camera --out build/seal` writes pictures and a CSV
file of picture, question and answer, as an operator would keep them.
"""
