"""A server for each peer, in the shape of its own quick start, with its documented settings for this machine."""
