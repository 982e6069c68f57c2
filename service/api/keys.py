"""Who may ask: API keys, and the tenant that each stands for."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from starlette.datastructures import Headers

from service.errors import Code, SettingsError, VQAError

MIN_KEY_CHARS: Final = 16
_TENANT = re.compile(r"[A-Za-z0-9._-]{1,64}")
# What a header can carry as one word.
_KEY = re.compile(r"[!-~]+")
_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE)


class ApiKeys:
    """The keys that a server knows; without any, everybody may ask and is the tenant "".

    Args:
        keys: pairs of tenant and key; None: there is no file of keys.
    """

    def __init__(self, keys: Iterable[tuple[str, str]] | None) -> None:
        # Hashed with a secret that dies with the process: nothing here is a key, and how long comparing takes says
        # nothing about one.
        self._secret = secrets.token_bytes(32)
        self._tenants = None if keys is None else {self._hash(key): tenant for tenant, key in keys}

    @classmethod
    def load(cls, path: Path | None) -> Self:
        """The keys of a file: a line `tenant:key` each, `#` begins a comment line; a tenant may have several.

        Raises:
            SettingsError: it cannot be read, holds no key, or holds a line that is none, a key that is too short, or
                one given to two tenants. The message names the line and quotes nothing of it.
        """
        if path is None:
            return cls(None)
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise _refuse(f"{path} cannot be read: {why}") from None
        tenant_of: dict[str, str] = {}
        for number, line in enumerate(map(str.strip, lines), 1):
            if not line or line.startswith("#"):
                continue
            tenant, _, key = (part.strip() for part in line.partition(":"))
            if not _TENANT.fullmatch(tenant) or not _KEY.fullmatch(key):
                raise _refuse(
                    f"{path}, line {number}: it must be tenant:key, with a tenant of up to 64 letters, digits, '.', "
                    "'_' and '-', and a key without blanks"
                )
            if len(key) < MIN_KEY_CHARS:
                raise _refuse(f"{path}, line {number}: a key needs at least {MIN_KEY_CHARS} characters")
            if tenant_of.setdefault(key, tenant) != tenant:
                raise _refuse(f"{path}, line {number}: this key belongs to another tenant already")
        if not tenant_of:
            raise _refuse(f"{path} holds no key, so nobody could ask")
        return cls((tenant, key) for key, tenant in tenant_of.items())

    def tenant_of(self, headers: Headers) -> str:
        """Whose request it is, by `Authorization: Bearer KEY` or else `X-API-Key: KEY`.

        Raises:
            VQAError: `unauthorized`, in the same words whether the key is missing or wrong.
        """
        if self._tenants is None:
            return ""
        bearer = _BEARER.fullmatch(headers.get("authorization", ""))
        given = self._hash(bearer[1] if bearer else headers.get("x-api-key", ""))
        found: str | None = None
        for known, tenant in self._tenants.items():
            # All of them, always: when it stops would tell which one came close.
            if hmac.compare_digest(known, given):
                found = tenant
        if found is None:
            raise VQAError(
                Code.UNAUTHORIZED,
                "Send a key that this server knows, as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'.",
            )
        return found

    def _hash(self, key: str) -> bytes:
        return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), key=self._secret, digest_size=32).digest()


def _refuse(why: str) -> SettingsError:
    return SettingsError(f"setting api_keys (VQA_API_KEYS): {why}")
