#include "agent/network/dns_table.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "agent/network/dns_message.h"
#include "agent/network/pod_files.h"
#include "agent/network/service_planner.h"
#include "base/strings.h"
#include "schema/conditions.h"
#include "schema/label_selector.h"
#include "schema/pod_phase.h"

namespace muster::agent {

namespace {

using ObjectKey = std::pair<std::string, std::string>;  // namespace, name

std::string DashedAddress(Ipv4 address) { return ReplaceAll(address.ToString(), ".", "-"); }

bool HasReadinessProbe(const json::Value& pod) {
  for (const json::Value& container : pod["spec"]["containers"].items()) {
    if (container.Has("readinessProbe")) return true;
  }
  return !pod["spec"]["readinessGates"].empty();
}

bool IsReady(const json::Value& pod) {
  return schema::ConditionHolds(pod["status"]["conditions"], "Ready");
}

// Whether a pod of this node counts as an endpoint already: nothing will say that it is not ready.
bool IsLocalEndpoint(const json::Value& pod, bool publish_not_ready) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (schema::IsFinalPhase(phase) || pod["metadata"].Has("deletionTimestamp")) return false;
  return publish_not_ready || !HasReadinessProbe(pod) || IsReady(pod);
}

}  // namespace

class DnsTableBuilder {
 public:
  explicit DnsTableBuilder(const DnsInput& input)
      : input_(input), table_(std::make_shared<DnsTable>()) {
    table_->domain_ = ToLower(input.cluster_domain);
    AddNode(table_->domain_);
    AddNode("svc." + table_->domain_);
    AddNode("pod." + table_->domain_);
    for (const json::Value& slice : input.endpoint_slices) {
      const std::string service = slice["metadata"]["labels"]["kubernetes.io/service-name"].Str();
      if (slice["addressType"].AsString("IPv4") != "IPv4" || service.empty()) continue;
      slices_[{slice["metadata"]["namespace"].Str(), service}].push_back(&slice);
    }
    for (const json::Value& pod : input.local_pods) {
      pods_[pod["metadata"]["namespace"].Str()].push_back(&pod);
    }
  }

  std::shared_ptr<const DnsTable> Build() {
    for (const json::Value& service : input_.services) {
      const std::string name =
          ToLower(fmt::format("{}.{}.svc.{}", service["metadata"]["name"].AsString(),
                              service["metadata"]["namespace"].AsString(), table_->domain_));
      if (!IsDnsName(name)) continue;
      if (service["spec"]["type"].AsString() == "ExternalName") {
        AddAlias(service, name);
      } else if (service["spec"]["clusterIP"].AsString() == "None") {
        AddHeadless(service, name);
      } else {
        AddClusterIp(service, name);
      }
    }
    return std::move(table_);
  }

 private:
  // The node and all those above it.
  DnsTable::Node* AddNode(const std::string& name) {
    if (!IsDnsName(name)) return nullptr;
    const auto [node, added] = table_->nodes_.try_emplace(name);
    const size_t dot = name.find('.');
    if (added && name != table_->domain_ && dot != std::string::npos) AddNode(name.substr(dot + 1));
    return &table_->nodes_[name];
  }

  void AddAddress(const std::string& name, Ipv4 address) {
    if (DnsTable::Node* node = AddNode(name); node != nullptr) node->addresses.insert(address);
  }

  void AddSrv(const json::Value& port, const std::string& service_name, const std::string& target) {
    const std::optional<uint16_t> number = ParsePort(port["port"]);
    const std::string_view port_name = port["name"].AsString();
    if (!number || port_name.empty() || !IsDnsName(target)) return;
    const std::string name = ToLower(
        fmt::format("_{}._{}.{}", port_name, port["protocol"].AsString("TCP"), service_name));
    if (DnsTable::Node* node = AddNode(name); node != nullptr)
      node->services.insert({*number, target});
  }

  void AddAlias(const json::Value& service, const std::string& name) {
    std::string alias = ToLower(service["spec"]["externalName"].AsString());
    if (alias.ends_with('.')) alias.pop_back();
    if (IsDnsName(alias)) AddNode(name)->alias = alias;
  }

  void AddClusterIp(const json::Value& service, const std::string& name) {
    AddNode(name);
    const auto add = [&](const json::Value& text) {
      const std::optional<Ipv4> address = Ipv4::Parse(text.AsString());
      if (!address) return;
      AddAddress(name, *address);
      table_->reverse_[*address] = name;
    };
    add(service["spec"]["clusterIP"]);
    for (const json::Value& text : service["spec"]["clusterIPs"].items()) add(text);
    for (const json::Value& port : service["spec"]["ports"].items()) AddSrv(port, name, name);
  }

  // One pod behind a headless Service; returns the name by which SRV records call it.
  std::string AddEndpoint(const std::string& service_name, Ipv4 address,
                          std::string_view hostname) {
    AddAddress(service_name, address);
    const std::string own = ToLower(fmt::format(
        "{}.{}", hostname.empty() ? DashedAddress(address) : std::string(hostname), service_name));
    AddAddress(own, address);
    if (IsDnsName(own)) {
      if (hostname.empty()) {
        table_->reverse_.try_emplace(address, own);
      } else {
        table_->reverse_[address] = own;
      }
    }
    return own;
  }

  void AddHeadless(const json::Value& service, const std::string& name) {
    AddNode(name)->headless = true;
    const bool publish_not_ready = service["spec"]["publishNotReadyAddresses"].AsBool();
    const std::string ns = service["metadata"]["namespace"].Str();
    for (const json::Value* slice : slices_[ObjectKey(ns, service["metadata"]["name"].Str())]) {
      AddSlice(*slice, name, publish_not_ready);
    }
    const auto selector = schema::LabelSelector::FromMap(service["spec"]["selector"]);
    for (const json::Value* pod : pods_[ns]) {
      if (!selector.Matches((*pod)["metadata"]["labels"])) continue;
      const std::optional<Ipv4> address = Ipv4::Parse((*pod)["status"]["podIP"].AsString());
      if (!address || !IsLocalEndpoint(*pod, publish_not_ready)) continue;
      const json::Value& spec = (*pod)["spec"];
      const bool named = spec["subdomain"].AsString() == service["metadata"]["name"].AsString();
      AddEndpoint(name, *address,
                  named && !spec["hostname"].AsString().empty() ? PodHostname(*pod) : "");
    }
  }

  void AddSlice(const json::Value& slice, const std::string& name, bool publish_not_ready) {
    for (const json::Value& endpoint : slice["endpoints"].items()) {
      if (!publish_not_ready && !endpoint["conditions"]["ready"].AsBool(true)) continue;
      for (const json::Value& text : endpoint["addresses"].items()) {
        const std::optional<Ipv4> address = Ipv4::Parse(text.AsString());
        if (!address) continue;
        const std::string target = AddEndpoint(name, *address, endpoint["hostname"].AsString());
        for (const json::Value& port : slice["ports"].items()) AddSrv(port, name, target);
      }
    }
  }

  const DnsInput& input_;
  std::shared_ptr<DnsTable> table_;
  std::map<ObjectKey, std::vector<const json::Value*>> slices_;
  std::map<std::string, std::vector<const json::Value*>> pods_;  // by namespace
};

std::shared_ptr<const DnsTable> DnsTable::Build(const DnsInput& input) {
  return DnsTableBuilder(input).Build();
}

bool DnsTable::InDomain(std::string_view name) const {
  if (!name.ends_with(domain_)) return false;
  return name.size() == domain_.size() || name[name.size() - domain_.size() - 1] == '.';
}

const DnsTable::Node* DnsTable::Find(std::string_view name) const {
  const auto found = nodes_.find(std::string(name));
  return found == nodes_.end() ? nullptr : &found->second;
}

bool DnsTable::Awaits(std::string_view name) const {
  if (const Node* node = Find(name); node != nullptr)
    return node->headless && node->addresses.empty();
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || name.starts_with('_')) return false;
  const Node* parent = Find(name.substr(dot + 1));
  return parent != nullptr && parent->headless;
}

std::string_view DnsTable::FindReverse(Ipv4 address) const {
  const auto found = reverse_.find(address);
  return found == reverse_.end() ? std::string_view() : found->second;
}

}  // namespace muster::agent
