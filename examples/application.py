"""The application behind the proxies of these examples: answers with what it was asked.

usage: application.py [PORT]     prints its address when it listens; a free port unless told
"""
import http.server
import sys


class Application(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body at once, so that nobody waits for an acknowledgement between them

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        sent = self.rfile.read(length)
        body = f"application: {self.command} {self.path} {len(sent)} bytes\n".encode()
        # Statuses that a proxy could mistake for its own, or for the limiter's.
        status = self.headers.get("X-Answer-With", "200")
        self.send_response(int(status))
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # proxies close connections as they like


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    server = Server(("127.0.0.1", port), Application)
    print(f"{server.server_address[0]}:{server.server_address[1]}", flush=True)
    server.serve_forever()
