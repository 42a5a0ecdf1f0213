"""The process that delivers one message, ended by the kernel after a time limit."""

import json
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import httpx

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Response statuses after which the same message may be accepted later."""

MOST_MEMORY = 1 << 30
"""Address space in bytes for delivery by Apprise, which reads whole answers."""


def main() -> int:
    """Send the message on standard input; write on standard error why it did not arrive."""
    told = json.load(sys.stdin)
    # Its default action ends the process, also where a name is looked up or a server sends byte after byte.
    signal.alarm(told["deadline"])
    if told["by_apprise"]:
        why = deliver_by_apprise(told["url"], told["body"])
    else:
        why = deliver(told["url"], told["body"].encode(), told["attempt"], told["pauses"])
    if why is not None:
        print(why, file=sys.stderr)
    return 0 if why is None else 1


def deliver(url: str, body: bytes, timeout: float, pauses: Sequence[float]) -> str | None:
    """Send a message until it is accepted or finally refused; return why it was not accepted, or None."""
    why = None
    for pause in (0.0, *pauses):
        time.sleep(pause)
        why, is_final = _attempt(url, body, timeout)
        if is_final:
            break
    return why


def deliver_by_apprise(url: str, text: str) -> str | None:
    """Send a text to the service of an Apprise URL; return why it was not delivered, or None."""
    from apprise import Apprise, AppriseAsset

    with suppress(OSError, ValueError):  # a system that does not know this limit
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    # No picture is fetched from elsewhere, and no redirect followed.
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
    """Why the message was not accepted, and whether another attempt is useless."""
    try:
        status = _status_of(url, body, {"content-type": "application/json", "user-agent": "winnow"}, timeout)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError):
        return "no request can be made to it; correct the URL, or the proxy in the environment", True
    except httpx.TimeoutException:
        return f"it did not answer within {timeout:g} s", False
    except httpx.HTTPError as error:
        return f"it cannot be reached ({type(error).__name__})", False
    if 200 <= status < 300:
        return None, True
    moved = ", and redirects are not followed" if 300 <= status < 400 else ""
    return f"it answered with status {status}{moved}", status not in AGAIN


def _status_of(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> int:
    """The response status of a server; only the headers of the answer are read."""
    with (
        httpx.Client(timeout=timeout, follow_redirects=False) as client,
        client.stream("POST", url, content=body, headers=headers) as response,
    ):
        return response.status_code


if __name__ == "__main__":
    sys.exit(main())
