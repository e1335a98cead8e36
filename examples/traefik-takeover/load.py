"""Sends requests and tells how many were answered how.

usage: load.py URL TIMES [HEADER]      that many, as fast as can be, over four connections
       load.py URL until FILE          as fast as can be, until there is such a file

Prints a number and a status on each line; `lost` is a request that was not answered.
"""
import collections
import http.client
import os
import sys
import threading
import urllib.parse

CONNECTIONS = 4


class Turns:
    """Whose turn it is: so many times, or until there is a file."""

    def __init__(self, amount, rest):
        self.left = None if amount == "until" else int(amount)
        self.file = rest
        self.lock = threading.Lock()

    def another(self):
        if self.left is None:
            return not os.path.exists(self.file)
        with self.lock:
            self.left -= 1
            return self.left >= 0


def send(url, headers, turns, statuses):
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
    while turns.another():
        try:
            connection.request("GET", url.path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            statuses.append(str(answer.status))
        except (OSError, http.client.HTTPException) as error:
            statuses.append("lost")
            print(error, file=sys.stderr)
            connection.close()
    connection.close()


def main(url, amount, rest=None):
    headers = dict([rest.split(": ", 1)]) if rest and amount != "until" else {}
    statuses = collections.deque()
    arguments = (urllib.parse.urlsplit(url), headers, Turns(amount, rest), statuses)
    threads = [threading.Thread(target=send, args=arguments) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for status, count in sorted(collections.Counter(statuses).items()):
        print(count, status)


if __name__ == "__main__":
    main(*sys.argv[1:])
