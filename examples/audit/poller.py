"""Copies the events of a partita server into an audit database, each of them once, however often it is killed.

    python3 poller.py http://localhost:7420 audit.db           # goes on until it is interrupted
    python3 poller.py http://localhost:7420 audit.db --once    # ends when it has come to the end of the log

The position is stored in the same transaction as the events that lie before it. So the two never contradict each other,
and the poller needs nothing but SQLite. PARTITA_TOKEN has the server's token, if it wants one.
"""

import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

from partita import Client  # noqa: E402

# The server holds its answer for so many seconds if there is nothing new. The client waits longer for one.
WAIT = "&wait=30"
TIMEOUT = 60.0

TABLES = """
CREATE TABLE IF NOT EXISTS audit (
    partition INTEGER, plog_offset INTEGER, workspace TEXT, wlog_offset TEXT, registered_at TEXT, event TEXT,
    PRIMARY KEY (partition, plog_offset)
);
CREATE TABLE IF NOT EXISTS position (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), path TEXT NOT NULL);
"""


def main(url, file, once):
    database = sqlite3.connect(file)
    database.executescript(TABLES)
    client = Client(url, token=os.environ.get("PARTITA_TOKEN"), timeout=TIMEOUT)
    row = database.execute("SELECT path FROM position").fetchone()
    path = row[0] if row else "/v1/log?limit=50"
    path = path.replace(WAIT, "") + ("" if once else WAIT)
    while True:
        page = client.get(path, deadline=600)
        path = page["next"] or page["poll_more"]
        with database:  # one transaction
            database.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", [row_of(e) for e in page["results"]])
            database.execute("INSERT OR REPLACE INTO position VALUES (1, ?)", (path,))
        print("%d events" % len(page["results"]), flush=True)
        if once and page["next"] is None:
            return


def row_of(event):
    return (event["partition"], int(event["plog_offset"]), event["workspace"], event["wlog_offset"], event["registered_at"], json.dumps(event))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--once" in sys.argv[3:])
