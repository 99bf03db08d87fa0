"""A client of a partita server, in one file that needs nothing but Python 3.9. Copy it into your program.

    from partita import Client

    client = Client("http://localhost:7420", token=None)
    done = client.append(42, {"kind": "shop", "wanted": [{"sequence": 16}], "body": {"order": 1}})
    print(done["numbers"][0]["number"])
    for position, event in client.follow("/v1/workspaces/42/log"):
        print(position, event["body"])

What may pass is tried again until the deadline: a server that is not there, is busy, or starts again. An append is
repeated under one key, so that it is written once. A log that is followed goes on behind the last event that it gave.
Requests and answers are those of docs/http.md: offsets and numbers are strings. A client is for one thread.
"""

import http.client
import ipaddress
import json
import random
import time
import urllib.parse
import uuid


class Problem(Exception):
    """What the server has refused. `kind` is like "expected-offset", `document` all that it has said."""

    def __init__(self, status, document):
        super().__init__("%s: %s" % (document.get("title", "no answer of partita"), document.get("detail", status)))
        self.status = status
        self.document = document
        self.kind = document.get("type", "").rpartition("#")[2]


class Unknown(Exception):
    """It is not known whether the event was written. The same key tells. `__cause__` is the answer that has ended it, if
    it was not the deadline."""

    def __init__(self, key):
        super().__init__("it is not known whether the event was written: append it again with key %r" % key)
        self.key = key


# These a server says only after it has looked in vain for an event with the key. Other refusals say nothing of an
# earlier try: they may be those of a proxy, or of a server that was set up anew.
_UNWRITTEN = {
    "messages.ErrExpectedOffset", "messages.ErrKindMismatch", "messages.ErrDedupMismatch", "messages.ErrOverflow",
    "messages.ErrBackward", "messages.ErrBusinessDate", "messages.ErrRecordAhead", "calendar.ErrZoneChange",
    "storage.ErrConflict",
}


class Client:
    def __init__(self, url, token=None, timeout=30.0):
        """Timeout is how long one try may take, and a stream be silent, in seconds: the server sends a comment every 15.

        A token is sent over https, or to this machine, only: else ValueError.
        """
        parts = urllib.parse.urlsplit(url)
        if token and parts.scheme != "https" and not _is_loopback(parts.hostname):
            raise ValueError("got %s and a token, which anybody could read on its way: want https, or this machine" % url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connect = lambda: kind(parts.netloc, timeout=timeout)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": "Bearer " + token} if token else {}

    def append(self, workspace, event, key=None, deadline=60.0):
        """Appends an event, or several as {"kind": …, "drafts": […]}, and returns where it stands.

        Without a key it takes a random one. Raises Problem, or after so many seconds TimeoutError: then nothing was
        written; or Unknown.
        """
        key = key or str(uuid.uuid4())
        body = json.dumps(event, ensure_ascii=False).encode()
        path = "/v1/workspaces/%d/events" % workspace
        return self._repeat("POST", path, body, {"Content-Type": "application/json", "Idempotency-Key": key}, deadline, key)

    def get(self, path, deadline=60.0):
        """Returns what is at a path, as /v1/workspaces/42/numbers. Raises Problem or TimeoutError."""
        return self._repeat("GET", path, None, {}, deadline, None)

    def pages(self, path):
        """Yields the results of a list, page by page, and of a log where it can be read on later."""
        while path:
            page = self.get(path)
            yield page["results"], page["next"] or page.get("poll_more")
            path = page["next"]

    def follow(self, path, after=None):
        """Yields (position, event) of a log, for ever. Save the position with what you make of the event."""
        failures = 0
        while True:
            wait = 0
            try:
                for after, event in self._stream(path, after):
                    failures = 0
                    yield after, event
            except (OSError, http.client.HTTPException):
                pass
            except Problem as problem:
                if not _passes(problem.status):
                    raise
                wait = problem.wait
            failures += 1
            time.sleep(wait + _delay(failures))

    def _repeat(self, method, path, body, headers, deadline, key):
        end = time.monotonic() + deadline
        failures, doubt = 0, False
        while True:
            sent = False
            try:
                connection = self._connect()
                try:
                    connection.connect()
                    sent = True
                    return self._ask(connection, method, path, body, headers)
                finally:
                    connection.close()
            except (OSError, http.client.HTTPException):
                wait, doubt = 0, doubt or sent
            except Problem as problem:
                unknown = problem.kind == "outcome-unknown" or not problem.kind and problem.status >= 500
                if not (unknown or _passes(problem.status)):
                    if key and doubt and problem.document.get("error") not in _UNWRITTEN:
                        raise Unknown(key) from problem
                    raise
                wait, doubt = problem.wait, doubt or unknown
            failures += 1
            wait += _delay(failures)
            if time.monotonic() + wait > end:
                if key and doubt:
                    raise Unknown(key)
                raise TimeoutError("no answer to %s %s within %g s" % (method, path, deadline))
            time.sleep(wait)

    def _ask(self, connection, method, path, body, headers):
        connection.request(method, self._target(path), body, {**self._headers, **headers})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status in (200, 201):
            return json.loads(content)
        raise _problem(answer, content)

    def _stream(self, path, after):
        if after is not None:
            path += "?" + urllib.parse.urlencode({"after": after})
        connection = self._connect()
        try:
            connection.request("GET", self._target(path), None, {**self._headers, "Accept": "text/event-stream"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise _problem(answer, answer.read())
            message = {}
            for line in answer:
                name, _, value = line.decode().rstrip("\r\n").partition(":")
                if name:
                    message[name] = value[1:] if value.startswith(" ") else value
                elif not value and "data" in message:
                    # What has no empty line behind it has not wholly come: it will come again.
                    document = json.loads(message["data"])
                    if message.get("event") == "problem":
                        raise _said(document["status"], document, 0)
                    yield message["id"], document
                    message = {}
        finally:
            connection.close()

    def _target(self, path):
        """Links of answers have the prefix already."""
        return path if self._prefix and path.startswith(self._prefix + "/") else self._prefix + path


def _is_loopback(host):
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _problem(answer, content):
    try:
        document = json.loads(content)
    except ValueError:
        document = {}
    after = answer.getheader("Retry-After", "")
    return _said(answer.status, document if isinstance(document, dict) else {}, int(after) if after.isdigit() else 0)


def _said(status, document, wait):
    problem = Problem(status, document)
    problem.wait = wait
    return problem


def _passes(status):
    return status in (408, 429, 502, 503, 504)


def _delay(failures):
    return min(5.0, 0.05 * 2 ** min(failures, 10)) * random.uniform(0.5, 1)
