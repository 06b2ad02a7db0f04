"""A table in a SQLite file behind HTTP: GET and PUT /KEY with the password."""
import http.server
import os
import sqlite3
import time

while os.environ["STARTUP"] != "now":
    time.sleep(1)

database = sqlite3.connect("/data/tables/table.db")
database.execute("PRAGMA synchronous=FULL")
database.execute("CREATE TABLE IF NOT EXISTS entry (name TEXT PRIMARY KEY, value TEXT)")
database.execute("CREATE TABLE IF NOT EXISTS start (flavor TEXT)")
database.execute("INSERT INTO start VALUES (?)", (os.environ["FLAVOR"],))
database.commit()
password = open("/secret/password").read()


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, code, text=""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        if self.path == "/healthz":
            return self.answer(200, "ok")
        if self.headers.get("X-Password") != password:
            return self.answer(401, "wrong password")
        if self.path == "/starts":
            return self.answer(200, " ".join(row[0] for row in database.execute("SELECT flavor FROM start ORDER BY rowid")))
        row = database.execute("SELECT value FROM entry WHERE name = ?", (self.path,)).fetchone()
        return self.answer(200, row[0]) if row else self.answer(404, "no such key")

    def do_PUT(self):
        if self.headers.get("X-Password") != password:
            return self.answer(401, "wrong password")
        value = self.rfile.read(int(self.headers["Content-Length"])).decode()
        database.execute("INSERT OR REPLACE INTO entry VALUES (?, ?)", (self.path, value))
        database.commit()
        return self.answer(200)

    def log_message(self, *_):
        pass


http.server.HTTPServer(("", 5432), Handler).serve_forever()
