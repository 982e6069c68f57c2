"""Official evaluators: a results file in a data set's own format in, the numbers its authors publish out.

This room reads files and compares texts; it asks no model. What has a data set's name holds its rules and names the
program whose numbers it gives, to the last digit; the rest is what they share. A file that the official loader refuses
is refused, with its place.
"""
