"""Running a model over a data set, and reporting what came of it.

`vqa eval` asks every question through the gateway (or a server), keeps a journal that a later run takes up, and writes
predictions; `scoring` gives them their accuracy; a report shows both.
"""
