"""Data sets as questions to ask, and answers in their results formats; one module a format.

What a file must hold to be scored is checked in `service.scoring`; here is what it takes to ask.
"""
