#include "apiserver/table/table.h"

#include <map>

#include "apiserver/table/json_path.h"
#include "apiserver/table/printers.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

class BuiltInPrinter : public TablePrinter {
 public:
  BuiltInPrinter(std::vector<TableColumn> columns, CellsOf cells)
      : columns_(std::move(columns)), cells_(cells) {}
  const std::vector<TableColumn>& columns() const override { return columns_; }
  json::Array Cells(const json::Value& object, Time now) const override {
    return cells_(object, now);
  }

 private:
  std::vector<TableColumn> columns_;
  CellsOf cells_;
};

// Columns of a CustomResourceDefinition, or name and age.
class PathPrinter : public TablePrinter {
 public:
  explicit PathPrinter(const schema::Kind& kind) {
    columns_.push_back(
        {"Name", "string", "name", "Name of the object, unique within its namespace"});
    paths_.emplace_back();
    for (const schema::PrinterColumn& column : kind.columns) {
      Result<JsonPath> path = JsonPath::Parse(column.json_path);
      if (!path || column.json_path.empty())
        continue;  // a CRD with such a path is refused when it is written
      columns_.push_back(
          {column.name, column.type, column.format, column.description, column.priority});
      paths_.push_back(std::move(*path));
    }
    if (columns_.size() > 1) return;
    columns_.push_back({"Age", "date", "", "How long ago the object was created"});
    paths_.push_back(*JsonPath::Parse(".metadata.creationTimestamp"));
  }

  const std::vector<TableColumn>& columns() const override { return columns_; }

  json::Array Cells(const json::Value& object, Time now) const override {
    json::Array cells = {object["metadata"]["name"]};
    for (size_t i = 1; i < columns_.size(); ++i)
      cells.push_back(Cell(columns_[i], paths_[i].Find(object), now));
    return cells;
  }

 private:
  static json::Value Cell(const TableColumn& column, const std::vector<json::Value>& found,
                          Time now) {
    if (found.empty() || found.front().IsNull()) return nullptr;
    const json::Value& first = found.front();
    if (column.type == "date") return AgeCell(first, now);
    if (column.type == "integer" || column.type == "number")
      return first.IsNumber() ? first : json::Value();
    if (column.type == "boolean") return first.IsBool() ? first : json::Value();
    std::string text;
    for (const json::Value& value : found) {
      if (!text.empty()) text += ' ';
      text += value.IsString() ? value.Str() : json::Write(value);
    }
    return text;
  }

  std::vector<TableColumn> columns_;
  std::vector<JsonPath> paths_;
};

TableColumn NameColumn() {
  return {"Name", "string", "name", "Name of the object, unique within its namespace"};
}
TableColumn AgeColumn() { return {"Age", "string", "", "How long ago the object was created"}; }
TableColumn Column(std::string name, std::string description) {
  return {std::move(name), "string", "", description};
}
TableColumn Wide(std::string name, std::string description) {
  return {std::move(name), "string", "", std::move(description), 1};
}
TableColumn Number(std::string name, std::string description, int priority = 0) {
  return {std::move(name), "integer", "", std::move(description), priority};
}

using Printers = std::map<std::string, std::shared_ptr<const TablePrinter>, std::less<>>;

void AddCorePrinters(Printers& printers) {
  const auto add = [&](const char* resource, std::vector<TableColumn> columns, CellsOf cells) {
    printers[resource] = std::make_shared<BuiltInPrinter>(std::move(columns), cells);
  };
  add("pods",
      {NameColumn(), Column("Ready", "Containers that are ready, of all"),
       Column("Status", "What the pod does, or why not"),
       Column("Restarts", "Container restarts, and how long ago the last one was"), AgeColumn(),
       Wide("IP", "Address of the pod"), Wide("Node", "Node that the pod is bound to"),
       Wide("Nominated Node", "Node that is being made free for the pod"),
       Wide("Readiness Gates", "Readiness gates that are met, of all")},
      PodCells);
  add("nodes",
      {NameColumn(), Column("Status", "Whether the node takes part"),
       Column("Roles", "From node-role.kubernetes.io labels"), AgeColumn(),
       Column("Version", "Version of the node agent"),
       Wide("Internal-IP", "Address inside the cluster"),
       Wide("External-IP", "Address from outside"), Wide("OS-Image", "Operating system"),
       Wide("Kernel-Version", "Kernel"), Wide("Container-Runtime", "What runs the containers")},
      NodeCells);
  add("namespaces", {NameColumn(), Column("Status", "Active or Terminating"), AgeColumn()},
      NamespaceCells);
  add("services",
      {NameColumn(), Column("Type", "How the service is reached"),
       Column("Cluster-IP", "Address inside the cluster"),
       Column("External-IP", "Addresses from outside"), Column("Port(s)", "Ports and protocols"),
       AgeColumn(), Wide("Selector", "Labels of the pods behind the service")},
      ServiceCells);
  add("configmaps", {NameColumn(), Number("Data", "Number of keys"), AgeColumn()}, ConfigMapCells);
  add("secrets",
      {NameColumn(), Column("Type", "What the secret is for"), Number("Data", "Number of keys"),
       AgeColumn()},
      SecretCells);
  add("endpoints",
      {NameColumn(), Column("Endpoints", "Addresses and ports that can take work"), AgeColumn()},
      EndpointsCells);
  add("serviceaccounts", {NameColumn(), Number("Secrets", "Number of secrets"), AgeColumn()},
      ServiceAccountCells);
  add("persistentvolumeclaims",
      {NameColumn(), Column("Status", "Phase of the claim"),
       Column("Volume", "Volume that it is bound to"), Column("Capacity", "Size of the volume"),
       Column("Access Modes", "How the volume may be mounted"),
       Column("StorageClass", "Class of the volume"),
       Column("VolumeAttributesClass", "Attributes of the volume"), AgeColumn(),
       Wide("VolumeMode", "Filesystem or Block")},
      PersistentVolumeClaimCells);
  add("events",
      {Column("Last Seen", "How long ago it happened last"),
       Column("Type", "Normal or Warning"),
       Column("Reason", "Why, in one word"),
       Column("Object", "What it is about"),
       Wide("Subobject", "Part of the object"),
       Wide("Source", "Who reported it"),
       Column("Message", "What happened"),
       Wide("First Seen", "How long ago it happened first"),
       Number("Count", "How often it happened", 1),
       {"Name", "string", "name", "Name of the event", 1}},
      EventCells);
}

void AddGroupPrinters(Printers& printers) {
  const auto add = [&](const char* resource, std::vector<TableColumn> columns, CellsOf cells) {
    printers[resource] = std::make_shared<BuiltInPrinter>(std::move(columns), cells);
  };
  add("endpointslices.discovery.k8s.io",
      {NameColumn(), Column("AddressType", "Kind of address"),
       Column("Ports", "Ports of the endpoints"), Column("Endpoints", "Addresses of the endpoints"),
       AgeColumn()},
      EndpointSliceCells);
  add("leases.coordination.k8s.io",
      {NameColumn(), Column("Holder", "Who holds the lease"), AgeColumn()}, LeaseCells);
  add("priorityclasses.scheduling.k8s.io",
      {NameColumn(),
       Number("Value", "Priority of pods with this class"),
       {"Global-Default", "boolean", "", "Whether pods without a class get this one"},
       AgeColumn(),
       Column("PreemptionPolicy", "Whether pods of this class may preempt others")},
      PriorityClassCells);
  add("customresourcedefinitions.apiextensions.k8s.io",
      {NameColumn(), {"Created At", "date", "", "When the definition was created"}},
      CustomResourceDefinitionCells);
}

void AddWorkloadPrinters(Printers& printers) {
  const auto add = [&](const char* resource, std::vector<TableColumn> columns, CellsOf cells) {
    printers[resource] = std::make_shared<BuiltInPrinter>(std::move(columns), cells);
  };
  const TableColumn containers = Wide("Containers", "Names of the containers");
  const TableColumn images = Wide("Images", "Images of the containers");
  const TableColumn selector = Wide("Selector", "Labels of the pods");
  add("deployments.apps",
      {NameColumn(), Column("Ready", "Pods that are ready, of those wanted"),
       Number("Up-to-date", "Pods of the present template"),
       Number("Available", "Pods that were ready for long enough"), AgeColumn(), containers, images,
       selector},
      DeploymentCells);
  add("replicasets.apps",
      {NameColumn(), Number("Desired", "Pods that are wanted"),
       Number("Current", "Pods that there are"), Number("Ready", "Pods that are ready"),
       AgeColumn(), containers, images, selector},
      ReplicaSetCells);
  add("statefulsets.apps",
      {NameColumn(), Column("Ready", "Pods that are ready, of those wanted"), AgeColumn(),
       containers, images},
      StatefulSetCells);
  add("daemonsets.apps",
      {NameColumn(), Number("Desired", "Nodes that shall have a pod"),
       Number("Current", "Nodes that have one"), Number("Ready", "Nodes whose pod is ready"),
       Number("Up-to-date", "Nodes whose pod is of the present template"),
       Number("Available", "Nodes whose pod was ready for long enough"),
       Column("Node Selector", "Labels of the nodes"), AgeColumn(), containers, images, selector},
      DaemonSetCells);
  add("controllerrevisions.apps",
      {NameColumn(), Column("Controller", "Whose state it keeps"), Number("Revision", "Its number"),
       AgeColumn()},
      ControllerRevisionCells);
  add("jobs.batch",
      {NameColumn(), Column("Status", "How far it is"),
       Column("Completions", "Pods that succeeded, of those that must"),
       Column("Duration", "From its start to its end, or until now"), AgeColumn(), containers,
       images, selector},
      JobCells);
  add("cronjobs.batch",
      {NameColumn(),
       Column("Schedule", "When its jobs are due"),
       Column("Timezone", "Time zone of the schedule"),
       {"Suspend", "boolean", "", "Whether no further jobs are made"},
       Number("Active", "Jobs that run"),
       Column("Last Schedule", "How long ago the last job was due"),
       AgeColumn(),
       containers,
       images,
       selector},
      CronJobCells);
}

void AddPolicyPrinters(Printers& printers) {
  const auto add = [&](const char* resource, std::vector<TableColumn> columns, CellsOf cells) {
    printers[resource] = std::make_shared<BuiltInPrinter>(std::move(columns), cells);
  };
  add("poddisruptionbudgets.policy",
      {NameColumn(), Column("Min Available", "How many pods must stay"),
       Column("Max Unavailable", "How many pods may be missing"),
       Number("Allowed Disruptions", "How many pods may be evicted now"), AgeColumn()},
      PodDisruptionBudgetCells);
  add("resourcequotas",
      {NameColumn(), Column("Request", "Requests and objects: what there is, of what there may be"),
       Column("Limit", "Limits: what there is, of what there may be"), AgeColumn()},
      ResourceQuotaCells);
  add("limitranges", {NameColumn(), {"Created At", "date", "", "When the range was created"}},
      LimitRangeCells);
}

TableColumn Flag(std::string name, std::string description) {
  return {std::move(name), "boolean", "", std::move(description)};
}

void AddVolumePrinters(Printers& printers) {
  const auto add = [&](const char* resource, std::vector<TableColumn> columns, CellsOf cells) {
    printers[resource] = std::make_shared<BuiltInPrinter>(std::move(columns), cells);
  };
  add("persistentvolumes",
      {NameColumn(), Column("Capacity", "How much it holds"),
       Column("Access Modes", "How nodes may mount it"),
       Column("Reclaim Policy", "What becomes of it when its claim is gone"),
       Column("Status", "Available, Bound, Released or Failed"),
       Column("Claim", "The claim that it is bound to"),
       Column("StorageClass", "The class that it belongs to"),
       Column("VolumeAttributesClass", "The class of its attributes"),
       Column("Reason", "Why it is in this status"), AgeColumn(),
       Wide("VolumeMode", "Filesystem or Block")},
      PersistentVolumeCells);
  add("storageclasses.storage.k8s.io",
      {NameColumn(), Column("Provisioner", "Who makes its volumes"),
       Column("ReclaimPolicy", "What becomes of volumes when their claims are gone"),
       Column("VolumeBindingMode", "When claims get their volumes"),
       Column("AllowVolumeExpansion", "Whether claims may grow"), AgeColumn()},
      StorageClassCells);
  add("volumeattributesclasses.storage.k8s.io",
      {NameColumn(), Column("DriverName", "Whose attributes they are"), AgeColumn()},
      VolumeAttributesClassCells);
  add("csidrivers.storage.k8s.io",
      {NameColumn(), Flag("AttachRequired", "Whether volumes are attached before they are mounted"),
       Flag("PodInfoOnMount", "Whether the driver is told about the pod"),
       Flag("StorageCapacity", "Whether the driver says how much room it has"),
       Column("TokenRequests", "Audiences of the tokens that it gets"),
       Flag("RequiresRepublish", "Whether it is asked again and again"),
       Column("Modes", "Which volumes it makes"), AgeColumn()},
      CsiDriverCells);
  add("csinodes.storage.k8s.io",
      {NameColumn(), Number("Drivers", "How many drivers are on the node"), AgeColumn()},
      CsiNodeCells);
  add("csistoragecapacities.storage.k8s.io",
      {NameColumn(), Column("StorageClassName", "The class whose room it is"),
       Column("Capacity", "How much room there is"), AgeColumn()},
      CsiStorageCapacityCells);
  add("volumeattachments.storage.k8s.io",
      {NameColumn(), Column("Attacher", "The driver that attaches it"), Column("PV", "The volume"),
       Column("Node", "Where it is attached"), Flag("Attached", "Whether it is"), AgeColumn()},
      VolumeAttachmentCells);
}

void AddAutoscalerPrinter(Printers& printers) {
  printers["horizontalpodautoscalers.autoscaling"] = std::make_shared<BuiltInPrinter>(
      std::vector<TableColumn>{NameColumn(), Column("Reference", "What is scaled"),
                               Column("Targets", "What is measured, of what is wanted"),
                               Column("MinPods", "As few pods as there may be"),
                               Column("MaxPods", "As many pods as there may be"),
                               Column("Replicas", "Pods that there are"), AgeColumn()},
      HorizontalPodAutoscalerCells);
  const std::vector<TableColumn> usage = {NameColumn(), Column("cpu", "Cores in use"),
                                          Column("memory", "Bytes in use"),
                                          Column("Window", "The time over which it is averaged")};
  printers["nodes.metrics.k8s.io"] = std::make_shared<BuiltInPrinter>(usage, NodeMetricsCells);
  printers["pods.metrics.k8s.io"] = std::make_shared<BuiltInPrinter>(usage, PodMetricsCells);
}

void AddAccessPrinters(Printers& printers) {
  const auto add = [&](const std::string& resource, std::vector<TableColumn> columns,
                       CellsOf cells) {
    printers[resource] = std::make_shared<BuiltInPrinter>(std::move(columns), cells);
  };
  for (const char* prefix : {"", "cluster"}) {
    add(fmt::format("{}roles.rbac.authorization.k8s.io", prefix),
        {NameColumn(), {"Created At", "date", "", "When the role was created"}}, RoleCells);
    add(fmt::format("{}rolebindings.rbac.authorization.k8s.io", prefix),
        {NameColumn(), Column("Role", "What is granted"), AgeColumn(),
         Wide("Users", "Users it is granted to"), Wide("Groups", "Groups it is granted to"),
         Wide("ServiceAccounts", "Service accounts it is granted to")},
        RoleBindingCells);
  }
  add("ingresses.networking.k8s.io",
      {NameColumn(), Column("Class", "The class that serves it"),
       Column("Hosts", "Hosts of its rules"), Column("Address", "Where it is reached"),
       Column("Ports", "Ports that it is reached at"), AgeColumn()},
      IngressCells);
  add("ingressclasses.networking.k8s.io",
      {NameColumn(), Column("Controller", "Who serves its Ingresses"),
       Column("Parameters", "Where more is said"), AgeColumn()},
      IngressClassCells);
  for (const char* plural : {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}) {
    add(fmt::format("{}.admissionregistration.k8s.io", plural),
        {NameColumn(), Number("Webhooks", "How many webhooks it has"), AgeColumn()},
        WebhookConfigurationCells);
  }
  add("apiservices.apiregistration.k8s.io",
      {NameColumn(), Column("Service", "Who serves it"),
       Column("Available", "Whether it answers, and why not"), AgeColumn()},
      ApiServiceCells);
  add("networkpolicies.networking.k8s.io",
      {NameColumn(), Column("Pod-Selector", "Labels of the pods that it is for"), AgeColumn()},
      NetworkPolicyCells);
}

Printers MakePrinters() {
  Printers printers;
  AddCorePrinters(printers);
  AddGroupPrinters(printers);
  AddWorkloadPrinters(printers);
  AddPolicyPrinters(printers);
  AddVolumePrinters(printers);
  AddAccessPrinters(printers);
  AddAutoscalerPrinter(printers);
  return printers;
}

}  // namespace

std::shared_ptr<const TablePrinter> PrinterFor(const schema::KindPtr& kind) {
  static const Printers& printers = *new Printers(MakePrinters());
  const auto found = printers.find(kind->QualifiedResource());
  if (found != printers.end() && !kind->custom) return found->second;
  return std::make_shared<PathPrinter>(*kind);
}

std::string AgeCell(const json::Value& timestamp, Time now) {
  const std::optional<Time> time = ParseTime(timestamp.AsString());
  if (!time) return "<unknown>";
  return HumanDuration(now - *time);
}

}  // namespace muster::apiserver
