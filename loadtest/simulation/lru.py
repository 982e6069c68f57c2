"""Entries used last, bounded in number: an answer cache whose entries all have one size, as those of a model have."""

from __future__ import annotations

from collections import OrderedDict


class LRU:
    """Keys used last.

    Args:
        entries: most of them; 0 keeps nothing.
    """

    def __init__(self, entries: int) -> None:
        self._most = entries
        self._keys: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, key: int) -> bool:
        """Whether the key is there; if so it is the one used last."""
        if key not in self._keys:
            return False
        self._keys.move_to_end(key)
        return True

    def put(self, key: int) -> None:
        """Keep a key in place of the one that was not used for the longest time."""
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._keys) > self._most:
            self._keys.popitem(last=False)
