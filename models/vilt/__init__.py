"""Recipe of a small ViLT for visual question answering: data, training, ONNX export, parity, calibration.

Runs in the export environment only (`models/constraints.txt`); serving needs none of it.
"""
