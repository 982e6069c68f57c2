"""What a request's `Cache-Control` asks for (RFC 9111)."""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from service.gateway.question import Freshness

# A directive with its argument, which may be a quoted text with commas in it; what is none is passed over.
_DIRECTIVE = re.compile(
    r"""[\s,]+ | (?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*
    (?:=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^",]*)))?
    [^,]*
    | [^,]+""",
    re.VERBOSE | re.DOTALL,
)


def freshness(headers: Headers) -> Freshness:
    """How the caller wants the cache used; `max-age=0` is `no-cache`, and the strictest of several holds.

    Other directives are passed over: an answer of the same model about the same picture does not age.
    """
    value = ",".join(headers.getlist("cache-control"))
    found = Freshness.CACHED
    for directive in _DIRECTIVE.finditer(value):
        name = (directive["name"] or "").lower()
        if name == "no-store":
            return Freshness.PRIVATE
        argument = (directive["quoted"] or directive["plain"] or "").strip()
        if name == "no-cache" or (name == "max-age" and re.fullmatch("0+", argument)):
            found = Freshness.FRESH
    return found
