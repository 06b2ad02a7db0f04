"""An admission webhook: labels what is written at /mutate, refuses what is labelled so at /validate.

    python3 webhook_server.py PORT CERTIFICATE KEY
"""

import base64
import http.server
import json
import ssl
import sys


def patch(request):
    labels = request['object']['metadata'].get('labels')
    if labels is None:
        return [{'op': 'add', 'path': '/metadata/labels', 'value': {'hooked': 'yes'}}]
    return [{'op': 'add', 'path': '/metadata/labels/hooked', 'value': 'yes'}]


def answer(path, request):
    response = {'uid': request['uid'], 'allowed': True}
    labels = (request['object'] or request['oldObject'])['metadata'].get('labels') or {}
    if path.startswith('/mutate'):
        response.update(patchType='JSONPatch', patch=base64.b64encode(json.dumps(patch(request)).encode()).decode())
    elif labels.get('verdict') == 'no':
        response.update(allowed=False, status={'code': 403, 'reason': 'Forbidden', 'message': 'the label says no'})
    elif labels.get('verdict') == 'hm':
        response.update(warnings=['the label says hm'])
    return response


class Webhook(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers['Content-Length'])))['request']
        review = {'apiVersion': 'admission.k8s.io/v1', 'kind': 'AdmissionReview', 'response': answer(self.path, request)}
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(('', int(sys.argv[1])), Webhook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


main()
