"""What a server does with a request that shows no password and no token."""

import http.client
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from orchestrator.machine.network import is_loopback

ANSWER_S: Final = 3.0
EXPERIMENTS: Final = "/api/2.0/mlflow/experiments/search?max_results=1"
JOBS: Final = "/api/jobs/"
OPEN: Final = 200
NO_ANSWER: Final = 0
CLOSED: Final = (401, 403)


def status_of(address: str, path: str) -> int:
    """The status of the answer to `path` at an http(s) address, whose user and password are left out.

    NO_ANSWER where there is none, or only a page, such as one to log in at: what is asked for are data.
    """
    parts = urlsplit(address)
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
    direct = [urllib.request.ProxyHandler({})] if is_loopback(parts.hostname or "") else []
    opener = urllib.request.build_opener(_StayHere, *direct)
    try:
        with opener.open(urlunsplit(plain).rstrip("/") + path, timeout=ANSWER_S) as answer:
            is_data = answer.headers.get_content_type() == "application/json"
            return int(answer.status) if is_data else NO_ANSWER
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (OSError, ValueError, http.client.HTTPException):
        return NO_ANSWER


class _StayHere(urllib.request.HTTPRedirectHandler):
    """What another address would answer is not asked for."""

    def redirect_request(self, *_: Any) -> None:
        """Follows nothing."""
