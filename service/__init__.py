"""A visual question answering service: one gateway, two kinds of backend, honest confidence."""

__version__ = "0.1.0"
