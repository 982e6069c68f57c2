"""This service side by side with its peers: with the same work behind each, and with what an hour's reading gives."""
