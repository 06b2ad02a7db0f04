#!/usr/bin/python3
"""The outside of tests/live/user.sh: a web server that says one line, and a name server for which every name is here."""

import http.server
import socket
import threading

HERE = "198.51.100.2"


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the outside\n")

    def log_message(self, *arguments):
        pass


def names():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((HERE, 53))
    while True:
        query, client = server.recvfrom(512)
        end = query.index(b"\0", 12) + 5  # the end of the question
        is_a = query[end - 4:end - 2] == b"\0\1"
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(HERE) if is_a else b""
        head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
        server.sendto(head + query[12:end] + answer, client)


threading.Thread(target=names, daemon=True).start()
http.server.ThreadingHTTPServer((HERE, 80), Page).serve_forever()
