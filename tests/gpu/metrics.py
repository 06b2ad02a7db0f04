"""Prints /metrics of the API server that a kubeconfig names: `metrics.py KUBECONFIG`. Needs nothing but Python."""

import base64
import re
import ssl
import sys
import tempfile
import urllib.request


def main():
    text = open(sys.argv[1]).read()

    def field(name):
        return re.search(rf"^\s*{name}:\s*\"?([^\"\s]+)", text, re.M).group(1)

    context = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
    with tempfile.NamedTemporaryFile() as pair:
        for name in ("client-certificate-data", "client-key-data"):
            pair.write(base64.b64decode(field(name)) + b"\n")
        pair.flush()
        context.load_cert_chain(pair.name)
    with urllib.request.urlopen(field("server") + "/metrics", context=context) as answer:
        print(answer.read().decode())


main()
