"""The request header `Cache-Control`: whether an answer that was computed before will do."""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from service.gateway import Freshness

# A directive with its argument, quoted or not (RFC 9111, section 5.2).
_DIRECTIVE = re.compile(r'\s*([A-Za-z0-9-]+)\s*(?:=\s*(?:"([^"]*)"|([^,\s]*)))?\s*(?:,|$)')


def freshness(headers: Headers) -> Freshness:
    """What the caller wants: `no-store` leaves no trace, `no-cache` and `max-age=0` ask anew.

    HTTP/1.0's `Pragma: no-cache` counts where there is no `Cache-Control`. What is not understood is ignored.
    """
    text = ",".join(headers.getlist("cache-control")) or headers.get("pragma", "")
    found = {match[1].lower(): match[2] or match[3] or "" for match in _DIRECTIVE.finditer(text)}
    if "no-store" in found:
        return Freshness.PRIVATE
    if "no-cache" in found or found.get("max-age") == "0":
        return Freshness.FRESH
    return Freshness.CACHED
