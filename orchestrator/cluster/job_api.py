"""The job API of a Ray cluster, which must ask for a token."""

import asyncio
import contextlib
import http.client
import logging
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from orchestrator.cluster.jobs import ClusterAwayError, Job, already_running
from orchestrator.cluster.submission import OF_JOBS, TYPED_NAME, Submission
from orchestrator.cluster.token import REMEDY, token, token_file
from orchestrator.console.errors import RefusedError
from orchestrator.machine.network import is_loopback, tunnel
from orchestrator.machine.waiting import wait_until
from orchestrator.tracking import names
from search_spaces.redaction import redacted_text
from trainables.errors import InputError

ADDRESS_VARIABLE: Final = "RAY_API_SERVER_ADDRESS"
DEFAULT_ADDRESS: Final = "http://127.0.0.1:8265"
ANSWER_S: Final = 10.0
NOT_READY: Final = "No available agent"
READY_S: Final = 30.0
"""A cluster that has just come up says NOT_READY for some seconds."""

SILENT_S: Final = 300.0
"""After so long without a line the connection may be dead, so a new one is made."""

TUNNEL: Final = "`ray dashboard cluster.yaml` in another terminal makes a tunnel to the cluster at " + DEFAULT_ADDRESS


def connect(address: str | None) -> "RayJobs":
    """The cluster at `address`, else at RAY_API_SERVER_ADDRESS, else at this machine's end of a tunnel.

    Raises:
        InputError: if the address is none, nothing answers there, or the token is not its.
        RefusedError: if either side does without tokens, or others could overhear this one's.
    """
    return RayJobs(usable(address))


def usable(address: str | None) -> str:
    """The address that `connect` would use, where a cluster answers there as it must; Ray is not loaded.

    Raises:
        InputError, RefusedError: as `connect`.
    """
    url = _checked(address or os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS)
    if os.environ.setdefault("RAY_AUTH_MODE", "token").lower() != "token":
        mode = os.environ["RAY_AUTH_MODE"]
        raise RefusedError(
            f"A job must be sent with a token, but RAY_AUTH_MODE is {mode}; unset it, or set it to token."
        )
    if not token():
        raise InputError(f"A job must be sent with the cluster's token, but {token_file()} holds none. {REMEDY}")
    _refuse_open(url)
    return url


def _checked(address: str) -> str:
    rule = f"--address must be http://HOST:PORT or https://HOST:PORT, and so must {ADDRESS_VARIABLE}, "
    rule += f"but got {redacted_text(address)!r}."
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        raise InputError(rule) from None
    if parts.scheme not in ("http", "https") or not host or parts.path not in ("", "/"):
        raise InputError(rule)
    if "@" in parts.netloc:
        raise InputError("--address must hold no user or password: Ray asks for its token alone.")
    if parts.scheme == "http" and not is_loopback(host):
        rule = f"Anyone who has the token can run anything, but it would travel to {host} unencrypted"
        raise RefusedError(f"{rule}. {tunnel(host, port)}")
    return f"{parts.scheme}://{parts.netloc}"


def _refuse_open(address: str) -> None:
    """Raises RefusedError where the cluster answers a request without a token."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(f"{address}/api/jobs/", timeout=ANSWER_S).close()
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return
        raise InputError(
            f"{address} is not a Ray dashboard: its /api/jobs/ answers {error.code} {error.reason}."
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise _away(address, error) from None
    rule = "A cluster must refuse anyone without a token, because a job can do anything on its machines"
    remedy = "Start it with RAY_AUTH_MODE=token on every machine"
    raise RefusedError(f"{rule}, but {address} lists its jobs to anybody. {remedy}.")


class RayJobs:
    """The jobs of the cluster whose dashboard is at `address`."""

    def __init__(self, address: str) -> None:
        os.environ[ADDRESS_VARIABLE] = address  # Ray prefers it to the argument
        os.environ["no_proxy"] = "*"  # the token is the cluster's, and no proxy's
        from ray.job_submission import JobSubmissionClient

        logging.getLogger("ray.dashboard").propagate = False
        self._address = address
        with self._in_one_line():
            self._client = JobSubmissionClient(address)

    def jobs(self) -> list[Job]:
        """All jobs of the cluster, the newest first."""
        with self._in_one_line():
            listed = self._client.list_jobs()
        return sorted((_job(details) for details in listed), key=lambda job: job.started_ms, reverse=True)

    def submit(self, submission: Submission, name: str, package: Path) -> None:
        """Starts the job `name` with the sources in `package`.

        Raises:
            RefusedError: if the name is taken.
        """
        refused: list[InputError] = []
        environment = {"working_dir": str(package), "env_vars": dict(submission.variables) | dict(OF_JOBS)}
        metadata = {names.SWEEP: submission.sweep, TYPED_NAME: submission.typed_name}

        def is_accepted() -> bool:
            try:
                with self._in_one_line():
                    self._client.submit_job(
                        entrypoint=submission.entrypoint,
                        submission_id=name,
                        runtime_env=environment,
                        metadata=metadata,
                    )
            except InputError as error:
                if f"{name} already exists" in str(error):
                    raise already_running(submission.sweep, name) from None
                if NOT_READY not in str(error):
                    raise
                refused.append(error)
                return False
            return True

        if not wait_until(is_accepted, READY_S, 1.0):
            raise refused[-1]

    def stop(self, name: str) -> None:
        """Asks for the job's end, without waiting for it."""
        with self._in_one_line():
            self._client.stop_job(name)

    def log(self, name: str) -> str:
        """The log of the job so far."""
        with self._in_one_line():
            return str(self._client.get_job_logs(name))

    def follow(self, name: str) -> Iterator[str]:
        """The log in pieces from its beginning, until the job ends, the connection does, or nothing comes for long.

        Raises:
            ClusterAwayError: if the connection ended in disorder.
        """
        import aiohttp

        pieces = self._client.tail_job_logs(name)

        async def next_piece() -> str | None:
            return await asyncio.wait_for(anext(pieces, None), SILENT_S)

        with asyncio.Runner() as runner:
            try:
                while (piece := runner.run(next_piece())) is not None:
                    yield piece
            except TimeoutError:
                return  # whether the cluster is away or the job says nothing, who follows asks
            except (OSError, RuntimeError, aiohttp.ClientError) as error:
                raise _away(self._address, error) from None

    @contextlib.contextmanager
    def _in_one_line(self) -> Iterator[None]:
        """Turns Ray's errors into messages for users."""
        from ray.exceptions import AuthenticationError

        try:
            yield
        except AuthenticationError:
            source = "RAY_AUTH_TOKEN" if os.environ.get("RAY_AUTH_TOKEN") else token_file()
            refusal = f"The cluster at {self._address} does not accept the token in {source}. {REMEDY}"
            raise InputError(refusal) from None
        except OSError as error:
            raise _away(self._address, error) from None
        except RuntimeError as error:
            raise InputError(f"The cluster at {self._address} answers: {_last_line(str(error))}.") from None


def _away(address: str, error: BaseException) -> ClusterAwayError:
    reason = getattr(error, "reason", None) or error
    line = redacted_text(_last_line(str(reason)) or type(error).__name__)
    return ClusterAwayError(f"No Ray cluster answers at {address} ({line}). {TUNNEL}.")


def _last_line(text: str) -> str:
    """The last line with words; Ray's errors may be tracebacks."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" .")]
    return redacted_text(lines[-1]).rstrip(".")[:300] if lines else ""


def _job(details: Any) -> Job:
    variables = (details.runtime_env or {}).get("env_vars") or {}
    return Job(
        name=details.submission_id or details.job_id or "",
        sweep=(details.metadata or {}).get(names.SWEEP, ""),
        state=details.status.value,
        entrypoint=details.entrypoint,
        started_ms=details.start_time or 0,
        ended_ms=details.end_time or None,
        message=_last_line(details.message or ""),
        variables={name: value for name, value in variables.items() if name not in OF_JOBS},
        typed_name=(details.metadata or {}).get(TYPED_NAME, ""),
    )
