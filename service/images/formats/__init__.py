"""Header readers, one a format: each checks a file's structure and size before any decoder sees it.

A reader `prepare(data, limits) -> Prepared` raises `ImageError` and nothing else, whatever the bytes.
"""
