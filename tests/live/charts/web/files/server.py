"""Answers with what its ConfigMap and its environment say."""
import http.server
import json
import os


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        settings = open("/config/greeting").read()
        body = json.dumps({"greeting": settings, "pod": os.environ["POD_NAME"], "extra": os.environ.get("EXTRA", "")})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
