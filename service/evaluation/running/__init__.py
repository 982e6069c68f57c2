"""Asking a model every question of a data set: who is asked, what is shown, what is kept, how to go on after a stop."""
