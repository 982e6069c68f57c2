"""Drawn shapes with questions: a generator of VQA data in the official VQA v2 format.

One example goes through four rooms, each a module: ``scene`` (what is there) -> ``render`` (pixels) -> ``topics`` (what
is asked, and the right answer from the scene's facts) -> ``annotators`` (what ten people answer). ``phrasing`` and
``degrade`` hold the wordings and the ways a picture goes bad, split so that what calibration and test use is never seen
in training.
"""
