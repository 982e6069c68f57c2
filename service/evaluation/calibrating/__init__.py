"""Fitting a model's calibration to what it said of questions with known answers; needs the extra `eval`."""
