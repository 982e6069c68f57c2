"""A hub's repository as a folder in the hub's own cache: only the files that a model is made of, resumed where begun.

`HF_ENDPOINT`, `HF_HUB_OFFLINE`, `HF_HOME`, `HF_TOKEN` and the proxies' variables are honoured, as huggingface_hub does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import requests
from huggingface_hub import HfApi, constants, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import disable_progress_bars

from models.vilt.add.folder import DESCRIPTION, WEIGHTS
from models.vilt.add.request import AddError

MAIN = "main"


@dataclass(frozen=True)
class Repository:
    """A model's repository at a hub.

    Attributes:
        name: `owner/name`.
        revision: branch, tag or commit.
        commit: that it is at; None where the hub does not tell.
        files: what it has, with sizes in bytes where the hub tells them; None where the cache must do.
    """

    name: str
    revision: str
    commit: str | None
    files: dict[str, int | None] | None

    @classmethod
    def find(cls, name: str, revision: str | None, say: Callable[[str], None]) -> Repository:
        """Ask the hub what a repository has; where the hub cannot be reached, see what the cache has.

        Raises:
            AddError: there is no such repository or revision, it is gated, or there is neither hub nor copy.
        """
        if not sys.stderr.isatty():
            disable_progress_bars()
        wanted = revision or MAIN
        try:
            found = HfApi().model_info(
                name, revision=wanted, files_metadata=True, timeout=constants.HF_HUB_ETAG_TIMEOUT
            )
        except RepositoryNotFoundError as error:
            raise _refused(name, error) from error
        except RevisionNotFoundError as error:
            raise AddError(f"{name} has no revision {wanted!r}") from error
        except HFValidationError as error:
            raise AddError(f"{name}: no repository can have this name: {error}") from error
        except (OfflineModeIsEnabled, requests.RequestException) as error:
            return cls._cached(name, wanted, error, say)
        files = {sibling.rfilename: sibling.size for sibling in found.siblings or ()}
        return cls(name, wanted, found.sha, files)

    @classmethod
    def _cached(cls, name: str, revision: str, error: Exception, say: Callable[[str], None]) -> Repository:
        repository = cls(name, revision, None, None)
        try:
            folder = repository.description()
        except AddError:
            folder = None
        if folder is None or not any((folder / each).is_file() for each in WEIGHTS):
            raise AddError(f"{name}: {_reason(error)}, and there is no whole copy in its cache. {_ADVICE.format(name)}")
        say(f"{_reason(error)}; taking the copy in its cache")
        return cls(name, revision, folder.name, None)

    def description(self) -> Path:
        """Download all but the weights; the folder with the files.

        Raises:
            AddError: they cannot be downloaded.
            OSError: they cannot be written.
        """
        return self._fetch(DESCRIPTION)

    def weights(self, say: Callable[[str], None]) -> Path:
        """Download the weights, in one of the formats that they are there in; the same folder.

        Raises:
            AddError: there are none, or they cannot be downloaded.
            OSError: they cannot be written.
        """
        if self.files is None:
            return self._fetch(WEIGHTS)
        first = next((name for name in WEIGHTS if name in self.files), None)
        if first is None:
            raise AddError(f"{self.name} has no weights that can be used: none of {', '.join(WEIGHTS)}")
        stem, suffix = first.removesuffix(".index.json").rsplit(".", 1)
        names = [n for n in self.files if n == first or (first.endswith("json") and _is_shard(n, stem, suffix))]
        size = sum(self.files[name] or 0 for name in names)
        say(f"downloading {first}" + (f" ({size / 1e6:,.0f} MB)" if size else "") + " unless the cache has it")
        return self._fetch(names)

    def _fetch(self, names: Sequence[str]) -> Path:
        try:
            folder = snapshot_download(
                self.name, revision=self.revision, allow_patterns=list(names), local_files_only=self.files is None
            )
        except RepositoryNotFoundError as error:
            # The files of a gated repository are refused, of which all may know that it is there.
            raise _refused(self.name, error) from error
        except LocalEntryNotFoundError as error:
            # Of a file that is not in the cache; the reason lies behind it.
            raise self._broken(error.__cause__ or error) from error
        except requests.RequestException as error:
            raise self._broken(error) from error
        except OSError as error:
            # huggingface_hub raises one without a number where a file has not the size that was announced.
            if error.errno is None:
                raise self._broken(error) from error
            raise
        if self.commit is not None and Path(folder).name != self.commit:
            raise AddError(
                f"{self.name}: its {self.revision} moved meanwhile; the same command again takes the new one"
            )
        # What the cache had is given back, where the hub has been lost meanwhile.
        if missing := [name for name in names if name in (self.files or ()) and not Path(folder, name).is_file()]:
            raise self._broken(FileNotFoundError(f"{missing[0]} did not come"))
        return Path(folder)

    def _broken(self, error: BaseException) -> AddError:
        return AddError(
            f"{self.name}: the download broke off: {_reason(error)}. The same command again goes on from there"
        )


_ADVICE = "Download it where there is a network (`hf download {} --local-dir FOLDER`), and give the folder instead"


def _refused(name: str, error: RepositoryNotFoundError) -> AddError:
    if isinstance(error, GatedRepoError):
        return AddError(
            f"{name} is gated: accept its terms at {constants.ENDPOINT}/{name} and give a token of yours in HF_TOKEN, "
            "or give a folder that has it"
        )
    return AddError(
        f"there is no repository {name} at {constants.ENDPOINT}, nor a folder of this name here; a private one needs a "
        "token in HF_TOKEN"
    )


def _is_shard(name: str, stem: str, suffix: str) -> bool:
    return name.startswith(f"{stem}-") and name.endswith(f".{suffix}")


def _reason(error: BaseException) -> str:
    """Why the hub did not give something, in a few words."""
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set"
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{constants.ENDPOINT} replied {error.response.status_code} {error.response.reason}".rstrip()
    if isinstance(error, requests.exceptions.ProxyError):
        return f"{constants.ENDPOINT} cannot be reached through the proxy that is set"
    if isinstance(error, requests.Timeout):
        return f"{constants.ENDPOINT} did not reply in time"
    if isinstance(error, requests.exceptions.ConnectionError):
        return f"{constants.ENDPOINT} cannot be reached"
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
