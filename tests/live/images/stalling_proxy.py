#!/usr/bin/python3
"""stalling_proxy.py PORT REGISTRY-PORT FOLDER: passes requests on to a registry. Half of a blob above 10 MB is sent, then
FOLDER/stalled is made, and the rest only once FOLDER/go is there. Each blob that is asked for is a line of FOLDER/blobs."""

import http.client
import http.server
import pathlib
import select
import sys

port, registry, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        upstream = http.client.HTTPConnection("127.0.0.1", registry)
        upstream.request(self.command, self.path, headers={"Accept": self.headers.get("Accept", "*/*")})
        answer = upstream.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name in ("Content-Type", "Docker-Content-Digest"):
            if answer.getheader(name):
                self.send_header(name, answer.getheader(name))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "/blobs/" in self.path:
            with (folder / "blobs").open("a") as file:
                file.write(self.path + "\n")
        if len(body) > 10_000_000 and not (folder / "go").exists():
            self.wfile.write(body[: len(body) // 2])
            (folder / "stalled").touch()
            select.select([self.connection], [], [])  # until the client is gone
            self.close_connection = True
            return
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", port), Proxy).serve_forever()
