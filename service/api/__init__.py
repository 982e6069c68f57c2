"""The door for programs: HTTP in, HTTP out. It reads, questions the gateway and writes; it decides nothing itself."""

from service.api.app import create_app

__all__ = ["create_app"]
