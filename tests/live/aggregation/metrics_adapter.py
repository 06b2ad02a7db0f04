#!/usr/bin/env python3
"""A server behind an APIService: custom.metrics.k8s.io/v1beta2 and external.metrics.k8s.io/v1beta1 over HTTPS.

  metrics_adapter.py PORT CERTIFICATE KEY

As stock extension servers do, it reads from the ConfigMap kube-system/extension-apiserver-authentication whom to
believe: only who shows the front proxy's certificate is served, and X-Remote-User is who asks. What metrics are is
written in the ConfigMap `load` of the namespace that is asked about.
"""

import datetime
import http.server
import json
import ssl
import sys
import time
import urllib.parse
import urllib.request

ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount/'
CUSTOM, EXTERNAL = 'custom.metrics.k8s.io/v1beta2', 'external.metrics.k8s.io/v1beta1'
TICKS = 3


def Api(path):
    with open(ACCOUNT + 'token', encoding='utf-8') as token:
        headers = {'Authorization': 'Bearer ' + token.read()}
    request = urllib.request.Request('https://kubernetes.default.svc' + path, headers=headers)
    trust = ssl.create_default_context(cafile=ACCOUNT + 'ca.crt')
    with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
        return json.load(answer)


def Now():
    return datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')


def Resources(group_version, names, kind):
    entries = [{'name': name, 'singularName': '', 'namespaced': True, 'kind': kind, 'verbs': ['get']} for name in names]
    return {'kind': 'APIResourceList', 'apiVersion': 'v1', 'groupVersion': group_version, 'resources': entries}


def CustomValues(namespace, resource, name, metric, query):
    load = Api('/api/v1/namespaces/%s/configmaps/load' % namespace)['data']
    names = [name]
    if name == '*':
        selector = urllib.parse.quote(query.get('labelSelector', [''])[0])
        pods = Api('/api/v1/namespaces/%s/pods?labelSelector=%s' % (namespace, selector))['items']
        names = [pod['metadata']['name'] for pod in pods]
    kind = {'pods': 'Pod', 'services': 'Service'}[resource]
    items = [{'describedObject': {'kind': kind, 'namespace': namespace, 'name': one, 'apiVersion': '/v1'},
              'metric': {'name': metric, 'selector': None}, 'timestamp': Now(), 'value': load[metric]} for one in names]
    return {'kind': 'MetricValueList', 'apiVersion': CUSTOM, 'metadata': {}, 'items': items}


def ExternalValues(namespace, metric):
    value = Api('/api/v1/namespaces/%s/configmaps/load' % namespace)['data'][metric]
    items = [{'metricName': metric, 'metricLabels': {}, 'timestamp': Now(), 'value': value}]
    return {'kind': 'ExternalMetricValueList', 'apiVersion': EXTERNAL, 'metadata': {}, 'items': items}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def Answer(self, code, value):
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def Fail(self, code, reason, message):
        self.Answer(code, {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure', 'code': code,
                           'reason': reason, 'message': message})

    def Tick(self):
        """What a watch looks like: pieces, with time between them."""
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        for i in range(TICKS):
            line = (json.dumps({'tick': i, 'at': time.time()}) + '\n').encode()
            self.wfile.write(b'%x\r\n%s\r\n' % (len(line), line))
            self.wfile.flush()
            time.sleep(1)
        self.wfile.write(b'0\r\n\r\n')

    def Who(self):
        return {'user': self.headers.get_all('X-Remote-User'), 'groups': self.headers.get_all('X-Remote-Group'),
                'authorization': self.headers.get('Authorization'),
                'impersonate': self.headers.get('Impersonate-User')}

    def do_GET(self):
        subject = dict(pair[0] for pair in self.connection.getpeercert()['subject'])
        if subject['commonName'] not in ALLOWED:
            return self.Fail(401, 'Unauthorized', 'not the front proxy')
        url = urllib.parse.urlsplit(self.path)
        parts = [urllib.parse.unquote(part) for part in url.path.split('/') if part]
        query = urllib.parse.parse_qs(url.query)
        group_version, rest = '/'.join(parts[1:3]), parts[3:]
        if not rest:
            names, kind = {CUSTOM: (['pods/requests_per_second', 'services/hits'], 'MetricValueList'),
                           EXTERNAL: (['queue'], 'ExternalMetricValueList')}[group_version]
            return self.Answer(200, Resources(group_version, names, kind))
        if rest[2:] == ['whoami']:
            return self.Answer(200, self.Who())
        if query.get('watch') == ['true']:
            return self.Tick()
        try:
            if group_version == CUSTOM:
                self.Answer(200, CustomValues(rest[1], rest[2], rest[3], rest[4], query))
            else:
                self.Answer(200, ExternalValues(rest[1], rest[2]))
        except KeyError as error:
            self.Fail(404, 'NotFound', 'no metric %s' % error)

    def log_message(self, *_):
        pass


# Listed by its name, as stock servers do.
AUTHENTICATION = Api('/api/v1/namespaces/kube-system/configmaps?fieldSelector=metadata.name%3D'
                     'extension-apiserver-authentication')['items'][0]['data']
ALLOWED = json.loads(AUTHENTICATION['requestheader-allowed-names'])
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CONTEXT.load_cert_chain(sys.argv[2], sys.argv[3])
CONTEXT.verify_mode = ssl.CERT_REQUIRED
CONTEXT.load_verify_locations(cadata=AUTHENTICATION['requestheader-client-ca-file'])
SERVER = http.server.ThreadingHTTPServer(('0.0.0.0', int(sys.argv[1])), Handler)
SERVER.socket = CONTEXT.wrap_socket(SERVER.socket, server_side=True)
SERVER.serve_forever()
