#include "agent/node/node_registrar.h"

#include "agent/volumes/local_volumes.h"
#include "base/log.h"
#include "schema/conditions.h"

namespace muster::agent {

NodeRegistrar::NodeRegistrar(Loop& loop, client::ApiClient& client, NodeFacts facts)
    : loop_(loop), client_(client), facts_(std::move(facts)) {}

NodeRegistrar::~NodeRegistrar() {
  for (TimerId timer : {lease_timer_, status_timer_, retry_timer_}) loop_.Cancel(timer);
}

client::Target NodeRegistrar::NodeTarget(const char* subresource) const {
  return {client::resources::kNodes, "", facts_.name, subresource};
}

void NodeRegistrar::Start(Task registered) {
  registered_ = std::move(registered);
  Register();
}

void NodeRegistrar::ReportFault(std::string reason, std::string message) {
  if (reason == facts_.fault_reason && message == facts_.fault_message) return;
  facts_.fault_reason = std::move(reason);
  facts_.fault_message = std::move(message);
  RegisterNow();
}

void NodeRegistrar::ReportDiskPressure(bool pressure) {
  facts_.disk_pressure = pressure;
  RegisterNow();
}

void NodeRegistrar::ReportGpus(const NodeFacts& gpus) {
  facts_.devices = gpus.devices;
  facts_.plugin_devices = gpus.plugin_devices;
  facts_.gpu_labels = gpus.gpu_labels;
  facts_.gpu_fault_reason = gpus.gpu_fault_reason;
  facts_.gpu_fault_message = gpus.gpu_fault_message;
  RegisterNow();
}

void NodeRegistrar::RegisterNow() {
  loop_.Cancel(status_timer_);
  loop_.Cancel(retry_timer_);
  Register();
}

void NodeRegistrar::Retry(const char* what, const Status& status) {
  LOG_WARN("agent: {} node={}: {}", what, facts_.name, status.message());
  retry_timer_ = loop_.After(kRegistrationRetry, [this] { Register(); });
}

void NodeRegistrar::Register() {
  client_.Get(NodeTarget(), lifetime_.Guard([this](Result<json::Value> node) {
    if (node) return Refresh(*node);
    if (node.error().reason() == Reason::kNotFound) return Create();
    Retry("read", node.error());
  }));
}

void NodeRegistrar::Create() {
  client_.Create({client::resources::kNodes, "", "", ""}, NewNode(facts_, loop_.Now()),
                 lifetime_.Guard([this](Result<json::Value> node) {
                   if (!node) return Retry("create", node.error());
                   node_uid_ = (*node)["metadata"]["uid"].Str();
                   WriteStatus();
                 }));
}

// The Node of an earlier run: our labels and annotations anew, everybody else's as they are.
void NodeRegistrar::Refresh(const json::Value& node) {
  node_uid_ = node["metadata"]["uid"].Str();
  status_before_ = node["status"];
  json::Value labels = NodeLabels(facts_);
  for (const std::string_view label : GpuLabelNames()) {
    if (!labels.Has(label)) labels = labels.Set(label, nullptr);
  }
  json::Value annotations = NodeAnnotations(facts_);
  if (!annotations.Has(kLocalVolumesAnnotation))
    annotations = annotations.Set(std::string(kLocalVolumesAnnotation), nullptr);
  const json::Value patch = json::Obj(
      {{"metadata", json::Obj({{"labels", labels}, {"annotations", annotations}})},
       {"spec",
        json::Obj({{"podCIDR", facts_.pod_cidr}, {"podCIDRs", json::List({facts_.pod_cidr})}})}});
  client_.Patch(NodeTarget(), client::PatchType::kMerge, patch,
                lifetime_.Guard([this](Result<json::Value> answer) {
                  if (!answer) return Retry("label", answer.error());
                  WriteStatus();
                }));
}

void NodeRegistrar::WriteStatus() {
  json::Value status = NodeStatus(facts_, status_before_, loop_.Now());
  // A resource that the node has no more (GPUs of an earlier run) must not stay in the maps.
  for (const char* list : {"capacity", "allocatable"}) {
    for (const json::Member& member : status_before_[list].members()) {
      if (!status[list].Has(member.first)) status = status.SetPath({list, member.first}, nullptr);
    }
  }
  const json::Value patch = json::Obj({{"status", status}});
  client_.Patch(NodeTarget("status"), client::PatchType::kMerge, patch,
                lifetime_.Guard([this](Result<json::Value> answer) {
                  if (!answer) return Retry("write status of", answer.error());
                  status_before_ = (*answer)["status"];
                  loop_.Cancel(status_timer_);
                  status_timer_ = loop_.After(kNodeStatusPeriod, [this] { Register(); });
                  if (registered_) {
                    Task registered = std::move(registered_);
                    registered_ = nullptr;
                    RenewLease();
                    registered();
                  }
                }));
}

void NodeRegistrar::RenewLease() {
  lease_timer_ = loop_.After(kLeasePeriod, [this] {
    RenewLease();
    LookAtStatus();
  });
  const client::Target target = {client::resources::kLeases, "kube-node-lease", facts_.name, ""};
  const json::Value patch =
      json::Obj({{"spec", json::Obj({{"holderIdentity", facts_.name},
                                     {"leaseDurationSeconds", 40},
                                     {"renewTime", FormatMicroTime(loop_.Now())}})}});
  client_.Patch(target, client::PatchType::kMerge, patch,
                lifetime_.Guard([this](Result<json::Value> answer) {
                  if (answer) return;
                  if (answer.error().reason() == Reason::kNotFound) return CreateLease();
                  LOG_WARN("agent: renew lease node={}: {}", facts_.name, answer.error().message());
                }));
}

void NodeRegistrar::LookAtStatus() {
  client_.Get(NodeTarget(), lifetime_.Guard([this](const Result<json::Value>& node) {
    const auto ready = [](const json::Value& status) {
      return schema::FindCondition(status["conditions"], "Ready")["status"].Str();
    };
    if (node && ready((*node)["status"]) != ready(status_before_)) RegisterNow();
  }));
}

void NodeRegistrar::CreateLease() {
  client_.Create({client::resources::kLeases, "kube-node-lease", "", ""},
                 NewLease(facts_.name, node_uid_, loop_.Now()),
                 lifetime_.Guard([this](Result<json::Value> answer) {
                   if (answer) return;
                   LOG_WARN("agent: create lease node={}: {}", facts_.name,
                            answer.error().message());
                 }));
}

}  // namespace muster::agent
