import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Mirror(BaseHTTPRequestHandler):
    """Answers /KIND/FILE with `server.answer(KIND, FILE)`, sent in the way that KIND names.

    `cut`: half of it; `silent`: nothing for a long time; `stalled`: nothing after the first bytes.
    None is "404 Not Found".
    """

    def do_GET(self):
        kind, file = self.path.strip("/").split("/")
        self.server.asked.append((kind, file))
        body, pause = self.server.answer(kind, file), self.server.closing.wait
        if body is None:
            self.send_error(404)
            return
        if kind == "silent":
            pause(20)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if kind == "stalled":
            self.wfile.write(body[:10])
            pause(20)
        else:
            self.wfile.write(body[: len(body) // 2] if kind == "cut" else body)

    def log_message(self, *args):
        """Keep quiet."""


@pytest.fixture
def mirror(monkeypatch):
    """A server on this machine: set its `answer`; `asked` lists the requests."""
    monkeypatch.setenv("NO_PROXY", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        server.asked, server.closing = [], threading.Event()
        server.handle_error = lambda *args: None  # clients that hang up are part of the tests
        server.url = lambda kind, host="127.0.0.1": f"http://{host}:{server.server_port}/{kind}/"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.closing.set()
        server.shutdown()
