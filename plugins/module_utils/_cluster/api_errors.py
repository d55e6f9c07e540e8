# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Interprets the API's errors: whether to try again, and what to do about them. Pure."""

from __future__ import annotations

import json
import random
import typing as t

from .._errors import RdmaError
from . import requirements
from .model import Json


class FieldConflict(Exception):
    """The server says that others own fields: [(field, owner)]."""

    def __init__(self, what: str, clashes: list[tuple[str, str]]) -> None:
        super().__init__(what)
        self.clashes = clashes


class NotFound(RdmaError):
    """The object is not there, or no longer the one that was listed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: it, its kind or its namespace was deleted.", "Run again. [object_deleted]", code=404)


class VersionConflict(RdmaError):
    """Another client changed the object after it was read."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: another client keeps changing it.", "Run again. [object_write_conflict]", code=409)


class Forbidden(RdmaError):
    """The user of the kubeconfig has no permission."""


def answered(call: t.Callable[[], t.Any]) -> t.Any:
    """Do the call and raise what it means to raise."""
    try:
        return call()
    except AttributeError as exc:
        # Where TLS fails, the client stumbles over the body of an answer that never came.
        if isinstance(exc.__context__, requirements.client.ApiException):
            raise exc.__context__ from None
        raise


def status_of(exc: t.Any) -> Json:
    """Return the Status object of an error, or what comes nearest."""
    try:
        status = json.loads(exc.body)
    except (TypeError, ValueError, RecursionError):
        status = None
    return status if isinstance(status, dict) else {"message": str(exc.reason), "details": {}}


def _causes(status: Json) -> list[Json]:
    """Return the causes of a Status object; a proxy's answer has other types."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []


def conflict_fields(status: Json) -> list[tuple[str, str]]:
    """Return [(field, owner)] of a conflict between field managers."""
    return [
        (str(cause.get("field", "")).lstrip("."), str(cause.get("message", "")).replace("conflict with ", "", 1))
        for cause in _causes(status)
        if cause.get("reason") == "FieldManagerConflict"
    ]


def is_retryable(code: int, status: Json) -> bool:
    """Return whether the same request may succeed a moment later."""
    if code == 500:
        # The server's way to say that the schema does not know a field.
        return "failed to create typed patch object" not in str(status.get("message"))
    # 0: the connection broke under TLS.
    return code in (0, 408, 409, 429, 502, 503, 504)


def retry_pause(exc: t.Any, pause: float) -> float:
    """Return how long to wait: the server's Retry-After, else the pause with a random part."""
    try:
        seconds = float((exc.headers or {}).get("Retry-After") or 0)
    except (TypeError, ValueError):
        seconds = 0.0
    return max(seconds, pause * random.uniform(0.7, 1.0))


def refused(what: str, code: int, status: Json) -> RdmaError:
    """Return what a refusal means and what to do about it."""
    reported = str(status.get("message") or f"HTTP {code}").strip().rstrip(".")
    reported = reported if len(reported) < 700 else f"{reported[:700]}..."
    causes = [cause.get("reason") for cause in _causes(status)]
    fix = "Correct what the API names and run again. [api_refused]"
    if code == 401:
        reported, fix = (
            f"the API does not know this identity ({reported})",
            "Renew the token or the kubeconfig; it may have expired. [api_identity]",
        )
    elif "NamespaceTerminating" in causes:
        fix = "Wait until the namespace is gone (check its finalizers), then run again. [namespace_ending]"
    elif code == 403:
        fix = "Give this identity that permission (docs/reference/permissions.md), then run again. [api_forbidden]"
    elif "failed calling webhook" in reported:
        fix = "The webhook is down: wait until spiderpool-controller is ready, then run again. [webhook_down]"
    elif "field not declared in schema" in reported:
        fix = (
            "The CRDs are older than the plan. Apply the chart's CRDs (role spiderpool), or update an adopted operator "
        )
        fix += "with its CRDs, and run again. [crds_outdated]"
    elif code in (0, 429) or code >= 500:
        fix = "The API is overloaded or failing: run again when it recovers; the run resumes here. [api_busy]"
    if code == 403:
        return Forbidden(f"{what}: {reported}.", fix, code=code)
    return RdmaError(f"{what}: {reported}.", fix, code=code)
