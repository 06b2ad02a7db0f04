"""Reads the facts of the upstream API (the table k8s-fields.tsv) for make_protos.py.

One row of the table is one protobuf field; Rows() gives them as Fact records, in the table's order, and Resolve() says
which protobuf type a Go type has.
"""

import collections
import csv
import re

Fact = collections.namedtuple(
    'Fact', 'package message json number go_type wire label pointer omit strategy merge_key markers')

# Package of the table -> (file below schema/k8s, protobuf package, API group, version).
FILES = {
    'core/v1': ('core_v1', 'io.k8s.api.core.v1', '', 'v1'),
    'pkg/apis/meta/v1': ('meta_v1', 'io.k8s.apimachinery.pkg.apis.meta.v1', None, None),
    'discovery/v1': ('discovery_v1', 'io.k8s.api.discovery.v1', 'discovery.k8s.io', 'v1'),
    'coordination/v1': ('coordination_v1', 'io.k8s.api.coordination.v1', 'coordination.k8s.io', 'v1'),
    'scheduling/v1': ('scheduling_v1', 'io.k8s.api.scheduling.v1', 'scheduling.k8s.io', 'v1'),
    'authentication/v1': ('authentication_v1', 'io.k8s.api.authentication.v1', 'authentication.k8s.io', 'v1'),
    'authorization/v1': ('authorization_v1', 'io.k8s.api.authorization.v1', 'authorization.k8s.io', 'v1'),
    'autoscaling/v1': ('autoscaling_v1', 'io.k8s.api.autoscaling.v1', 'autoscaling', 'v1'),
    'autoscaling/v2': ('autoscaling_v2', 'io.k8s.api.autoscaling.v2', 'autoscaling', 'v2'),
    'admissionregistration/v1': ('admissionregistration_v1', 'io.k8s.api.admissionregistration.v1',
                                 'admissionregistration.k8s.io', 'v1'),
    'apps/v1': ('apps_v1', 'io.k8s.api.apps.v1', 'apps', 'v1'),
    'batch/v1': ('batch_v1', 'io.k8s.api.batch.v1', 'batch', 'v1'),
    'networking/v1': ('networking_v1', 'io.k8s.api.networking.v1', 'networking.k8s.io', 'v1'),
    'policy/v1': ('policy_v1', 'io.k8s.api.policy.v1', 'policy', 'v1'),
    'rbac/v1': ('rbac_v1', 'io.k8s.api.rbac.v1', 'rbac.authorization.k8s.io', 'v1'),
    'storage/v1': ('storage_v1', 'io.k8s.api.storage.v1', 'storage.k8s.io', 'v1'),
    # Not served: messages that batch/v1 needs.
    'scheduling/v1alpha3': ('scheduling_v1alpha3', 'io.k8s.api.scheduling.v1alpha3', None, None),
    'pkg/apis/apiextensions/v1': (
        'apiextensions_v1', 'io.k8s.apiextensions_apiserver.pkg.apis.apiextensions.v1',
        'apiextensions.k8s.io', 'v1'),
    'pkg/apis/apiregistration/v1': (
        'apiregistration_v1', 'io.k8s.kube_aggregator.pkg.apis.apiregistration.v1',
        'apiregistration.k8s.io', 'v1'),
}

# Messages whose Go code is not in the table, and the file that describes them.
BY_HAND = {
    'resource.Quantity': ('schema/k8s/resource.proto', 'io.k8s.apimachinery.pkg.api.resource.Quantity'),
    'intstr.IntOrString': ('schema/k8s/intstr.proto',
                           'io.k8s.apimachinery.pkg.util.intstr.IntOrString'),
    'runtime.RawExtension': ('schema/k8s/runtime.proto', 'io.k8s.apimachinery.pkg.runtime.RawExtension'),
    'metav1.Time': ('schema/k8s/meta_v1.proto', 'io.k8s.apimachinery.pkg.apis.meta.v1.Time'),
    'metav1.MicroTime': ('schema/k8s/meta_v1.proto', 'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime'),
    'metav1.FieldsV1': ('schema/k8s/meta_v1.proto', 'io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1'),
    'apiextensionsv1.JSONSchemaProps': (
        'schema/k8s/apiextensions_v1.proto',
        'io.k8s.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps'),
    'apiextensionsv1.CustomResourceSubresourceStatus': (
        'schema/k8s/apiextensions_v1.proto',
        'io.k8s.apiextensions_apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus'),
}

QUALIFIERS = {'metav1': 'pkg/apis/meta/v1', 'v1': 'core/v1', 'apiv1': 'core/v1', 'corev1': 'core/v1',
              'schedulingv1alpha3': 'scheduling/v1alpha3'}
SCALARS = {'string': 'string', 'bool': 'bool', 'int32': 'int32', 'int64': 'int64', 'int': 'int64',
           'float64': 'double', '[]byte': 'bytes', 'byte': 'bytes'}
# Go types that are neither messages nor strings.
ALIASES = {'ResourceList': 'map[string]resource.Quantity'}

# The names that the protobuf encoding gives to embedded Go structs.
INLINE_NAMES = {'ProbeHandler': 'handler'}


def Rows(path):
    with open(path, encoding='utf-8') as table:
        rows = csv.reader(table, delimiter='\t', quoting=csv.QUOTE_NONE)
        next(rows)
        return [Fact(*row) for row in rows]


def ByMessage(rows):
    """{(package, message): [Fact]} in the table's order."""
    messages = collections.OrderedDict()
    for row in rows:
        messages.setdefault((row.package, row.message), []).append(row)
    return messages


class Resolver:
    """Says what a Go type is in protobuf."""

    def __init__(self, messages):
        self.messages = messages

    def Named(self, package, name):
        """(package, message) in the table, a protobuf name by hand, or a scalar's name."""
        if name in SCALARS:
            return SCALARS[name]
        qualifier, _, bare = name.rpartition('.')
        if not qualifier and package == 'pkg/apis/meta/v1' and 'metav1.' + name in BY_HAND:
            return BY_HAND['metav1.' + name][1]
        if not qualifier and 'apiextensionsv1.' + name in BY_HAND:
            return BY_HAND['apiextensionsv1.' + name][1]
        if name in BY_HAND:
            return BY_HAND[name][1]
        home = QUALIFIERS.get(qualifier, package) if qualifier else package
        if (home, bare) in self.messages:
            return (home, bare)
        return 'string'  # named string types: phases, policies, UIDs

    def Shape(self, package, go_type):
        """('one'|'list'|'map', type as Named() gives it)."""
        go_type = go_type.lstrip('*')
        go_type = ALIASES.get(go_type.rpartition('.')[2], go_type)
        if go_type == '[]byte':
            return 'one', 'bytes'
        if go_type.startswith('[]'):
            return 'list', self.Named(package, go_type[2:].lstrip('*'))
        mapped = re.match(r'map\[[\w.]+\](.*)', go_type)
        if mapped:
            return 'map', self.Named(package, mapped[1].lstrip('*'))
        return 'one', self.Named(package, go_type)


def InlineName(fact):
    bare = fact.go_type.lstrip('*').rpartition('.')[2]
    return INLINE_NAMES.get(bare, bare[0].lower() + bare[1:])


def Markers(fact, name):
    """The values of a marker such as listMapKey, in order."""
    return re.findall(r'(?:^| )\+' + re.escape(name) + r'=(\S+)', fact.markers)
