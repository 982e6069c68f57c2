"""Measuring the service from outside, over HTTP."""
