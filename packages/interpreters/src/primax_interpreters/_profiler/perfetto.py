"""Serving a trace to Perfetto, which fetches it from this machine."""

from __future__ import annotations

import os

# Perfetto's web page may fetch from this port only.
_PORT = 9001


def serve_once(path: str, port: int = _PORT) -> None:
    """Print a link that opens a trace in Perfetto, and wait until the trace is fetched.

    Raises:
      OSError: if the port is in use.
    """
    import http.server

    name = os.path.basename(path)
    with open(path, "rb") as file:
        content = file.read()

    class Handler(http.server.BaseHTTPRequestHandler):
        fetched = False

        def do_GET(self) -> None:
            is_trace = self.path.lstrip("/") == name
            self.send_response(200 if is_trace else 404)
            self.send_header("Access-Control-Allow-Origin", "https://ui.perfetto.dev")
            self.send_header("Content-Length", str(len(content) if is_trace else 0))
            self.end_headers()
            if is_trace:
                self.wfile.write(content)
                Handler.fetched = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    try:
        server = http.server.HTTPServer(("127.0.0.1", port), Handler)
    except OSError as e:
        raise OSError(
            e.errno, f"the trace {path} cannot be served to Perfetto on port {port}: {e.strerror}"
        ) from None
    with server:
        at = server.server_address[1]
        print(f"Open https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{at}/{name}", flush=True)
        while not Handler.fetched:
            server.handle_request()
