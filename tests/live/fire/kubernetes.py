"""A small client of the API server for tests that are killed around: it waits for the server to come back."""

import base64
import http.client
import json
import os
import ssl
import tempfile
import time
import urllib.parse


class Cluster:
    def __init__(self, kubeconfig, patience=60):
        config = {}
        for line in open(kubeconfig):
            name, _, value = line.strip().lstrip("- ").partition(": ")
            config[name] = value.strip().strip('"')
        self.address = urllib.parse.urlparse(config["server"]).netloc
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(config["certificate-authority-data"]).decode())
        self.context.check_hostname = False
        pem = base64.b64decode(config["client-certificate-data"]) + base64.b64decode(config["client-key-data"])
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(pem)
        self.context.load_cert_chain(file.name)
        os.unlink(file.name)
        self.patience = patience

    def request(self, method, path, body=None, content="application/json"):
        """(status, body); tries again while nobody answers."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                connection = http.client.HTTPSConnection(self.address, context=self.context, timeout=20)
                connection.request(method, path, json.dumps(body) if body is not None else None,
                                   {"Content-Type": content})
                answer = connection.getresponse()
                text = answer.read()
                connection.close()
                if answer.status not in (429, 500, 502, 503, 504):
                    return answer.status, text
                error = f"{answer.status} {text[:200]}"
            except (OSError, http.client.HTTPException) as problem:
                error = repr(problem)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{method} {path}: not within {self.patience} s: {error}")
            time.sleep(0.05)

    def get(self, path):
        status, text = self.request("GET", path)
        return json.loads(text) if status == 200 else None

    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in self.get("/api/v1/namespaces/default/pods")["items"]}

    def create_pod(self, name, spec):
        status, text = self.request("POST", "/api/v1/namespaces/default/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        # 409: the answer to the first try was lost.
        assert status in (201, 409), f"create {name}: {status} {text}"

    def delete_pod(self, name):
        status, text = self.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
        assert status in (200, 202, 404), f"delete {name}: {status} {text}"

    def logs(self, name, previous=False):
        status, text = self.request(
            "GET", f"/api/v1/namespaces/default/pods/{name}/log?container=main" + ("&previous=true" if previous else ""))
        return text.decode() if status == 200 else f"status {status}: {text.decode()}"
