"""Admission webhooks for Pages: marks each, and refuses a text that nobody shall read."""
import base64
import http.server
import json
import ssl


def judge(path, request):
    page = request["object"]
    if path.startswith("/mutate"):
        patch = [{"op": "add", "path": "/metadata/labels", "value": {**page["metadata"].get("labels", {}), "demo.example.com/checked": "yes"}}]
        return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    if "secret" in page["spec"]["text"]:
        return {"allowed": False, "status": {"code": 403, "message": "spec.text: nobody shall read a secret"}}
    return {"allowed": True}


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(b"{}")

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {"uid": review["request"]["uid"], **judge(self.path, review["request"])}
        self.answer(json.dumps({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}).encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("", 8443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
