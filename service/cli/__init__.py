"""The door for people: the command `vqa`."""
