"""A keeper: documents by key over HTTP, each with a version, as the real one answers.

usage: keeper.py [PORT] [FOLDER]     prints its address when it listens; a free port unless told

GET /admin/get/KEY answers {"value", "version", "mod_revision"} with what the file KEY.json of the folder
holds (this folder's `limits` unless told), to user `admin` with the password of $KEEPER_PASSWORD.
`version` counts the changes of a document, and is 0 where there is none; `mod_revision` those of all.
"""
import base64
import http.server
import json
import os
import pathlib
import sys
import threading

PASSWORD = os.environ.get("KEEPER_PASSWORD", "Pas$w0rd")
FOLDER = pathlib.Path(__file__).parent / "limits"


class Documents:
    """Documents as they are now, and how often each has changed."""

    def __init__(self, folder):
        self.folder = folder
        self.seen = {}
        self.revision = 0
        self.lock = threading.Lock()

    def get(self, key):
        path = self.folder / f"{key}.json"
        with self.lock:
            value = path.read_text() if path.is_file() else ""
            before, version, changed_at = self.seen.get(key, ("", 0, 0))
            if value != before:
                self.revision += 1
                version = version + 1 if value else 0
                changed_at = self.revision
                self.seen[key] = (value, version, changed_at)
            return {"value": value, "version": version, "mod_revision": changed_at}


class Keeper(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        said = "Basic " + base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != said:
            return self.answer(401, {"error": "who are you?"})
        place, _, key = self.path.rpartition("/")
        if place != "/admin/get" or not key.isidentifier():
            return self.answer(404, {"error": "there is nothing here"})
        self.answer(200, self.server.documents.get(key))

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    server = Server(("127.0.0.1", port), Keeper)
    server.documents = Documents(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else FOLDER)
    print(f"{server.server_address[0]}:{server.server_address[1]}", flush=True)
    server.serve_forever()
