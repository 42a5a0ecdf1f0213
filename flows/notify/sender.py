"""Child process that delivers one message; the kernel ends it after a time limit."""

import json
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import httpx

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Response statuses after which another attempt can succeed."""

MOST_MEMORY = 1 << 30
"""Maximum address space in bytes for delivery by Apprise, which reads whole responses into memory."""


def main() -> int:
    """Send the message that standard input describes; print the reason to standard error if that fails."""
    request = json.load(sys.stdin)
    # The signal ends the process, even during a name look-up or if a server sends single bytes.
    signal.alarm(request["deadline"])
    if request["by_apprise"]:
        why = deliver_by_apprise(request["url"], request["body"])
    else:
        why = deliver(request["url"], request["body"].encode(), request["attempt"], request["pauses"])
    if why is not None:
        print(why, file=sys.stderr)
    return 0 if why is None else 1


def deliver(url: str, body: bytes, timeout: float, pauses: Sequence[float]) -> str | None:
    """Send a message, with further attempts after errors that can pass; return why it failed, or None."""
    why = None
    for pause in (0.0, *pauses):
        time.sleep(pause)
        why, is_final = _attempt(url, body, timeout)
        if is_final:
            break
    return why


def deliver_by_apprise(url: str, text: str) -> str | None:
    """Send a text to the service of an Apprise URL; return why it failed, or None."""
    from apprise import Apprise, AppriseAsset

    with suppress(OSError, ValueError):  # the system does not support this limit
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    # Fetch no pictures, and follow no redirects.
    asset = AppriseAsset(
        app_id="Winnow", app_url="", image_url_mask="", image_url_logo="", http_redirects=False
    )
    service = Apprise(asset=asset)
    if not service.add(url):
        return "Apprise knows no service of this URL; its documentation lists them"
    if not service.notify(body=text, body_format="text"):
        return "Apprise could not deliver the message; to see why, run: apprise -vv --body test URL"
    return None


def _attempt(url: str, body: bytes, timeout: float) -> tuple[str | None, bool]:
    """Send the message once; return why it failed, or None, and whether the result is final."""
    try:
        status = _status_of(url, body, {"content-type": "application/json", "user-agent": "winnow"}, timeout)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError):
        return "its URL or the proxy in the environment is invalid; correct it", True
    except httpx.TimeoutException:
        return f"it did not answer within {timeout:g} s", False
    except httpx.HTTPError as error:
        return f"it cannot be reached ({type(error).__name__})", False
    if 200 <= status < 300:
        return None, True
    moved = ", and redirects are not followed" if 300 <= status < 400 else ""
    return f"it answered with status {status}{moved}", status not in AGAIN


def _status_of(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> int:
    """Send a POST request and return the response's status; the response's body is not read."""
    with (
        httpx.Client(timeout=timeout, follow_redirects=False) as client,
        client.stream("POST", url, content=body, headers=headers) as response,
    ):
        return response.status_code


if __name__ == "__main__":
    sys.exit(main())
