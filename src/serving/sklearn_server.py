"""A model server for scikit-learn: one model, KServe's v1 protocol and the Open Inference Protocol (v2).

Needs Python 3 and scikit-learn, nothing else. It listens at once, so that whoever asks for its health is answered while the
model is still loading, and is ready once the model is loaded. A model that cannot be loaded ends the server; why is the
last line of its log and the message of its container's end. When it is told to stop (SIGTERM) it goes on answering until
nobody has asked for a moment.
"""

import argparse
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL_ENDINGS = (".joblib", ".pkl", ".pickle")
MAX_BODY_BYTES = 64 * 1024 * 1024
TERMINATION_MESSAGE = "/dev/termination-log"
# After SIGTERM: as long as somebody asked within the first of these, and at most the second.
QUIET_SECONDS, MOST_DRAIN_SECONDS = 1.0, 20.0

V2_TYPES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
}


class Refused(Exception):
    """What a client is told, with its status code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def find_model(directory):
    if os.path.isfile(directory):
        return directory
    names = sorted(n for n in os.listdir(directory) if n.endswith(MODEL_ENDINGS))
    if not names:
        raise RuntimeError(f"no model in {directory}: expected a file that ends in {', '.join(MODEL_ENDINGS)}")
    if len(names) > 1:
        raise RuntimeError(f"more than one model in {directory}: {', '.join(names)}")
    return os.path.join(directory, names[0])


class Model:
    def __init__(self, name):
        self.name = name
        self.estimator = None

    def load(self, directory):
        import joblib

        path = find_model(directory)
        started = time.monotonic()
        estimator = joblib.load(path)
        if not hasattr(estimator, "predict"):
            raise RuntimeError(f"{path} holds a {type(estimator).__name__}, which has no predict()")
        self.estimator = estimator
        print(f"sklearnserver: loaded {path} in {time.monotonic() - started:.2f} s", flush=True)

    def predict(self, rows):
        probabilities = os.environ.get("PREDICT_PROBA", "false").lower() == "true"
        try:
            if probabilities and hasattr(self.estimator, "predict_proba"):
                return self.estimator.predict_proba(rows)
            return self.estimator.predict(rows)
        except (ValueError, TypeError) as error:
            raise Refused(400, f"the model refuses this input: {error}") from error


def predict_v1(model, body):
    rows = body.get("instances", body.get("inputs")) if isinstance(body, dict) else None
    if not isinstance(rows, list):
        raise Refused(400, 'Expected "instances" or "inputs" to be a list')
    answer = model.predict(rows)
    return {"predictions": answer.tolist() if hasattr(answer, "tolist") else list(answer)}


def tensor_of(entry):
    import numpy

    if not isinstance(entry, dict) or not isinstance(entry.get("data"), list) or not isinstance(entry.get("shape"), list):
        raise Refused(400, "each of inputs needs name, shape, datatype and data")
    kind = V2_TYPES.get(entry.get("datatype"))
    if kind is None:
        raise Refused(400, f"input {entry.get('name')!r}: datatype {entry.get('datatype')!r} is not one of {', '.join(V2_TYPES)}")
    try:
        return numpy.array(entry["data"], dtype=kind).reshape(entry["shape"])
    except (ValueError, TypeError, OverflowError) as error:
        raise Refused(400, f"input {entry.get('name')!r}: {error}") from error


def infer_v2(model, body):
    import numpy

    inputs = body.get("inputs") if isinstance(body, dict) else None
    if not isinstance(inputs, list) or not inputs:
        raise Refused(400, 'Expected "inputs" to be a list of tensors')
    tensors = [tensor_of(entry) for entry in inputs]
    if len(tensors) == 1:
        rows = tensors[0]
    else:  # one column each
        try:
            rows = numpy.concatenate([t.reshape(t.shape[0], -1) for t in tensors], axis=1)
        except (ValueError, IndexError) as error:
            raise Refused(400, f"inputs do not fit together: {error}") from error
    answer = numpy.asarray(model.predict(rows))
    kinds = {numpy.dtype(v): k for k, v in V2_TYPES.items()}
    reply = {
        "model_name": model.name,
        "id": body.get("id") or os.urandom(16).hex(),
        "outputs": [{
            "name": "output-0",
            "shape": list(answer.shape),
            "datatype": kinds.get(answer.dtype, "BYTES"),
            "data": answer.flatten().tolist(),
        }],
    }
    return reply


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def __init__(self, port, model):
        self.model = model
        self.lock = threading.Lock()
        self.active = 0
        self.last_end = time.monotonic()
        super().__init__(("::" if self.address_family == socket.AF_INET6 else "0.0.0.0", port), Handler)

    def server_bind(self):
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def enter(self):
        with self.lock:
            self.active += 1

    def leave(self):
        with self.lock:
            self.active -= 1
            self.last_end = time.monotonic()

    def is_quiet(self):
        with self.lock:
            return self.active == 0 and time.monotonic() - self.last_end >= QUIET_SECONDS


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "sklearnserver"
    disable_nagle_algorithm = True
    timeout = 300  # of an idle connection

    def log_message(self, *_):
        pass

    def answer(self, code, body):
        text = json.dumps(body).encode()
        head = f"HTTP/1.1 {code} {self.responses.get(code, ('',))[0]}\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(text)}\r\n"
        if self.close_connection:
            head += "Connection: close\r\n"
        self.wfile.write((head + "\r\n").encode() + text)  # in one piece: no waiting for an acknowledgement

    def body(self):
        try:
            length = int(self.headers.get("Content-Length", "0"))
        except ValueError:
            length = -1
        if length < 0 or "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            self.close_connection = True
            raise Refused(411, "Content-Length is needed")
        if length > MAX_BODY_BYTES:
            self.close_connection = True
            raise Refused(413, f"at most {MAX_BODY_BYTES} bytes")
        try:
            return json.loads(self.rfile.read(length))
        except ValueError as error:
            raise Refused(400, f"Unrecognized request format: {error}") from error

    def check_model(self, name):
        model = self.server.model
        if name != model.name:
            raise Refused(404, f"Model with name {name} does not exist.")
        if model.estimator is None:
            raise Refused(503, f"Model with name {name} is not ready.")
        return model

    def respond(self, make):
        self.server.enter()
        try:
            self.answer(*make())
        except Refused as error:
            self.answer(error.code, {"error": str(error)})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception as error:  # the model's own
            print(f"sklearnserver: {self.path}: {type(error).__name__}: {error}", flush=True)
            self.answer(500, {"error": f"{type(error).__name__}: {error}"})
        finally:
            self.server.leave()

    def do_GET(self):
        self.respond(self.get)

    def do_POST(self):
        self.respond(self.post)

    def get(self):
        path = self.path.split("?", 1)[0].rstrip("/")
        model = self.server.model
        ready = model.estimator is not None
        if path in ("", "/v2/health/live"):
            return 200, {"status": "alive"} if path == "" else {"live": True}
        if path == "/v2/health/ready":
            return (200 if ready else 503), {"ready": ready}
        if path == "/v1/models":
            return 200, {"models": [model.name]}
        if path == "/v2":
            return 200, {"name": "sklearnserver", "version": "1", "extensions": []}
        if path == "/v2/models":
            return 200, {"models": [model.name]}
        match = re.fullmatch(r"/(v1|v2)/models/([^/:]+)(?:/versions/[^/]+)?(/ready)?", path)
        if not match or (match[3] and match[1] == "v1"):
            raise Refused(404, f"nothing at {path}")
        self.check_model(match[2])
        if match[1] == "v1" or match[3]:
            return 200, {"name": model.name, "ready": True}
        return 200, {"name": model.name, "platform": "sklearn", "versions": [], "inputs": [], "outputs": []}

    def post(self):
        body = self.body()
        path = self.path.split("?", 1)[0]
        match = re.fullmatch(r"/v1/models/([^/:]+):predict", path)
        if match:
            return 200, predict_v1(self.check_model(match[1]), body)
        match = re.fullmatch(r"/v2/models/([^/:]+)(?:/versions/[^/]+)?/infer", path)
        if match:
            return 200, infer_v2(self.check_model(match[1]), body)
        raise Refused(404, f"nothing at {path}")


def fail(message):
    print(f"sklearnserver: {message}", flush=True)
    try:
        with open(TERMINATION_MESSAGE, "w", encoding="utf-8") as file:
            file.write(message)
    except OSError:
        pass
    os._exit(1)


def load(model, directory):
    try:
        model.load(directory)
    except Exception as error:  # whatever a pickle may do
        fail(f"the model cannot be loaded: {type(error).__name__}: {error}")


def drain(server):
    deadline = time.monotonic() + MOST_DRAIN_SECONDS
    server.last_end = time.monotonic()
    tick = threading.Event()
    while not server.is_quiet() and time.monotonic() < deadline:
        tick.wait(0.05)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name", required=True)
    parser.add_argument("--model_dir", default="/mnt/models")
    parser.add_argument("--http_port", type=int, default=8080)
    arguments, unknown = parser.parse_known_args()
    if unknown:
        print(f"sklearnserver: arguments without meaning here: {' '.join(unknown)}", flush=True)
    model = Model(arguments.model_name)
    server = Server(arguments.http_port, model)
    stop = lambda *_: threading.Thread(target=drain, args=(server,), daemon=True).start()
    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=load, args=(model, arguments.model_dir), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
