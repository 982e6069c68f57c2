"""This service side by side with its peers: the same work behind each, and what each one's guide gives within an hour."""
