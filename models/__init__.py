"""Model folders and the recipes that make them (data, training, export, calibration)."""
