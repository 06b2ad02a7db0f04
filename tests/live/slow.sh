#!/usr/bin/env bash
# Issue 3, line 8: who reads a watch too slowly gets whole events in order and then 410, over TLS; others notice nothing.
source "$(dirname "$0")/lib.sh"
up
kubectl create configmap big --from-literal=number=0
DATA=$DATA python3 - <<'PYTHON'
import json, os, socket, ssl, time, urllib.request

pki = os.environ["DATA"] + "/pki"
context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
path = "/api/v1/namespaces/default/configmaps"


def open_watch(receive_bytes):
    raw = socket.socket()
    if receive_bytes:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    raw.connect(("127.0.0.1", 6443))
    secure = context.wrap_socket(raw, server_hostname="127.0.0.1")
    secure.settimeout(30)
    secure.sendall(f"GET {path}?watch=1&fieldSelector=metadata.name%3Dbig HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    return secure


def events_of(bytes_seen):
    """The objects of a whole chunked answer; the answer must have its end."""
    head, _, rest = bytes_seen.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    text = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return [json.loads(line) for line in text.splitlines()]
        text, rest = text + rest[:int(size, 16)], rest[int(size, 16) + 2:]


slow = open_watch(16384)
padding = "x" * 500_000
for number in range(1, 61):
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"},
                       "data": {"number": str(number), "padding": padding}}).encode()
    request = urllib.request.Request(f"https://127.0.0.1:6443{path}/big", data=body, method="PUT",
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, context=context) as answer:
        assert answer.status == 200, answer.status

seen = b""
while piece := slow.recv(1 << 16):
    seen += piece
events = events_of(seen)
last = events.pop()
assert last["type"] == "ERROR" and last["object"]["code"] == 410, last
numbers = [int(event["object"]["data"]["number"]) for event in events]
assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) and len(numbers) < 55, numbers
assert last["object"]["reason"] == "Expired" and "list again" in last["object"]["message"], last
print(f"result: a watch that was not read got {len(numbers)} of about 60 events, then: {last['object']['message']}")
PYTHON
