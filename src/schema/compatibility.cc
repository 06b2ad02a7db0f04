#include "schema/compatibility.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "schema/registry.h"

namespace muster::schema {
namespace {

// Jobs carry whole pods; what is said of Pod holds there too.
constexpr std::string_view kPodTemplate = "io.k8s.api.core.v1.PodTemplateSpec";

// The parts of a pod, which our own kinds have outside of templates, too.
constexpr std::string_view kPartsOfPods = "io.k8s.api.core.v1.";

class KindTable {
 public:
  explicit KindTable(bool refers_to_pod) : refers_to_pod_(refers_to_pod) {}

  void Walk(const Kind& kind) { Walk(*kind.schema, ""); }
  const std::string& rows() const { return rows_; }
  // Places of which the table of Pod tells.
  const std::vector<std::string>& like_pods() const { return like_pods_; }

 private:
  void Walk(const Schema& schema, const std::string& path) {
    if (schema.name == kPodTemplate) return;
    // Init containers are like containers: each type is told of once, where it first occurs.
    if (!schema.name.empty() && !walked_.insert(&schema).second) return;
    if (refers_to_pod_ && schema.name.starts_with(kPartsOfPods)) {
      KindTable part(false);
      part.Walk(schema, path);
      if (!part.rows_.empty()) like_pods_.push_back("`" + path + "`");
      return;
    }
    for (const Field& field : schema.fields) {
      std::string place = path.empty() ? field.name : path + "." + field.name;
      if (field.support != Field::Support::kActedOn) {
        AddRow(field, place);
        continue;
      }
      const Schema* target = field.schema;
      for (; target->items != nullptr && target->name.empty(); target = target->items)
        place += target->type == Type::kArray ? "[]" : "{}";
      Walk(*target, place);
    }
  }

  void AddRow(const Field& field, const std::string& place) {
    std::string happens = field.support == Field::Support::kRestrictsNotYet
                              ? "warning; the pod fails rather than run without the restriction"
                              : "warning; not acted on";
    if (!field.loosening_values.empty())
      happens += "; of " + Join(field.loosening_values, ", ") + " a warning only";
    if (!field.acted_on_values.empty())
      happens += ". Acted on: " + Join(field.acted_on_values, ", ");
    rows_ += "| `" + place + "` | " + happens + " | " + field.description + " |\n";
  }

  const bool refers_to_pod_;
  std::set<const Schema*> walked_;
  std::string rows_;
  std::vector<std::string> like_pods_;
};

void AddKind(const Kind& kind, bool is_own, std::string& out) {
  KindTable table(is_own);
  table.Walk(kind);
  out += "\n## " + kind.kind + " (" + kind.GroupVersion() + ")\n\n";
  const std::vector<std::string>& like_pods = table.like_pods();
  if (!like_pods.empty()) {
    out += "As in the table of Pod: " + Join(like_pods, ", ") + ".\n";
    if (!table.rows().empty()) out += "\n";
  } else if (table.rows().empty()) {
    out += "All fields are acted on.\n";
  }
  if (!table.rows().empty())
    out += "| field | what happens | what it is for |\n|---|---|---|\n" + table.rows();
}

constexpr std::string_view kIntroduction = R"(# Compatibility

Written by `tools/schema/compatibility` from the `support` options in `schema/`; change them
there.

Every kind below is served with all of upstream's fields: they are stored, validated and given
back, in JSON, YAML and protobuf (custom resources, ours among them, have no protobuf, nor do
answers of definitions, APIServices and metrics). Fields
that have an effect upstream and none here yet are listed. Setting one is answered with
`Warning: <object>: <field> is not acted on yet`. A field that *restricts* a pod (user,
capabilities, seccomp, ...) makes the pod fail with a reason rather than run without the
restriction. A volume that cannot be made keeps its pod from starting, with a reason.

A type that occurs in several places (containers, init containers) is listed where it occurs
first. Pod templates inside jobs follow the table of Pod; so do the parts of a pod that kinds of
machine learning have outside of templates.

A `hostPort` leads from the node's addresses, and for the node's own programs from 127.0.0.1, to
the pod, which sees the client's address (the node's, for 127.0.0.1 and for itself). The node of
an ordinary user has a network of its own, and its addresses are reached from inside it alone;
where pods are plain processes, it has to be the `containerPort`. A pod whose hostPort a program of
the node has already (the API server, sshd) waits until that ends, and an event says so.

Acted on in part: a pod whose volumes name claims (`persistentVolumeClaim`, `ephemeral`) gets a
node once all of them are bound or can be bound there, by kube-scheduler's rules. Claims get
volumes that exist, or, of the class `local-path` (the default), a directory on the node of
their first pod, of which nobody measures the size and which other nodes do not reach, whatever
the access mode. For other classes their provisioners have to run. Nothing is recycled. `muster
scheduler` beside another cluster does what kube-scheduler does, claims that wait for their
first consumer included, but for limits of volumes per node (CSINode), free storage
(CSIStorageCapacity), and disks that pods name without a claim.

NFS volumes (`nfs` of pods and PersistentVolumes) are mounted by the node's own `mount -t nfs`,
as the kubelet does, where muster runs as root (tested against Linux' own server, NFSv4).
`mountOptions` are for them alone: a hostPath or local volume that has some is refused. The
option `bg` is refused, too. Provisioning them is for a provisioner of the cluster's own.

A Service's `spec.trafficDistribution` becomes hints in its EndpointSlices, which follow the
nodes' label `topology.kubernetes.io/zone`, and nodes go by hints as kube-proxy 1.34 does,
whoever wrote them. The annotation before it, `service.kubernetes.io/topology-mode: Auto`, which
upstream still acts on, is answered with a warning.

NetworkPolicies are enforced where pods have a network of their own; elsewhere (plain processes
of a user) pods that one selects are refused. Between a pod and its own node everything passes,
as upstream: probes, pods on the node's network, and the cluster's DNS and API server, which are
the node's here.

What a pod would rather have (preferred affinity, PreferNoSchedule, ScheduleAnyway, images that
a node has) is scored and weighted as upstream, with two differences: it comes before packing,
while upstream adds the two up; and scores are scaled over all nodes that the pod may run on,
full ones included. Replicas without constraints of their own are spread by default only with
`schedulerName: muster-spread`; all other names pack.

Admission webhooks are asked about writes, deletions, evictions, bindings, scaling, tokens,
reviews, `exec` and what goes to a node's proxy, also when a part of muster itself writes. A
configuration with `matchConditions` is refused: nothing evaluates them yet, and without them a
webhook would be asked about, and could refuse, more than was meant. CustomResourceDefinitions
with a conversion webhook are taken with a warning, and their versions differ by `apiVersion`
alone.

An APIService may name a Service for a group version of its own, for one of
CustomResourceDefinitions, or for `metrics.k8s.io`, which is then answered there; not for
another group version that this server serves itself: that is refused. Requests for an upgrade
(`exec`, WebSocket) are not passed on, `kubectl explain` does not know what other servers serve,
and a namespace goes without waiting for a server that does not answer.
)";

}  // namespace

std::string CompatibilityMarkdown() {
  std::string out(kIntroduction);
  for (const KindPtr& kind : Registry::BuiltIn().kinds()) AddKind(*kind, false, out);
  for (const KindPtr& kind : Registry::BuiltIn().own_custom_kinds()) AddKind(*kind, true, out);
  return out;
}

}  // namespace muster::schema
