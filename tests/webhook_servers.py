"""A web server in a thread of the test that keeps what it is sent, and answers as a script says."""

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Webhook:
    """What was sent to it, in order, and how it answers: with the next of `script`, else 200."""

    url: str = ""
    sent: list = field(default_factory=list)
    paths: list = field(default_factory=list)
    script: list = field(default_factory=list)
    """Statuses; "drips" and "floods" never end, "redirect" leads to another path."""
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def webhook(*script):
    found = Webhook(script=list(script))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(found))
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}/told"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        found.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(found):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            found.sent.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            found.paths.append(self.path)
            how = found.script.pop(0) if found.script else 200
            if how == "drips":
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while not found.over.wait(0.05):
                    self.wfile.write(b"x: y\r\n")
                return
            if how == "floods":
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    while not found.over.is_set():
                        self.wfile.write(bytes(1 << 20))
                return
            self.send_response(307 if how == "redirect" else how)
            if how == "redirect":
                self.send_header("location", found.url.replace("told", "elsewhere"))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    return Handler
