#!/usr/bin/env python3
"""Asks an InferenceService and counts its answers.

  load.py URL COUNT [PARALLEL]     so many requests, then prints "ANSWER NUMBER" lines
  load.py URL until FILE PARALLEL  until the file is there

Each request is a connection of its own, unless it asks for more. What is no 200 counts as "failed: why"."""

import collections
import json
import os
import sys
import threading
import urllib.error
import urllib.request

url, amount = sys.argv[1], sys.argv[2]
stop_file = sys.argv[3] if amount == "until" else None
parallel = int(sys.argv[4] if stop_file else (sys.argv[3] if len(sys.argv) > 3 else 4))
left = None if stop_file else int(amount)
lock = threading.Lock()
counts = collections.Counter()


def take():
    global left
    if stop_file:
        return not os.path.exists(stop_file)
    with lock:
        left -= 1
        return left >= 0


def ask():
    body = json.dumps({"instances": [[0.0]]}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=90) as answer:
            return json.dumps(json.load(answer)["predictions"])
    except urllib.error.HTTPError as error:
        return f"failed: {error.code} {error.read().decode(errors='replace')}"
    except Exception as error:
        return f"failed: {type(error).__name__} {error}"


def work():
    while take():
        said = ask()
        with lock:
            counts[said] += 1


threads = [threading.Thread(target=work) for _ in range(parallel)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for said, number in sorted(counts.items()):
    print(said, number)
