#include "cluster/devices.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "cluster/resources.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::cluster {

namespace {

json::Value ParsedAnnotation(const json::Value& object, std::string_view annotation) {
  const std::string_view text = object.Path({"metadata", "annotations", annotation}).AsString();
  if (text.empty()) return nullptr;
  const Result<json::Value> parsed = json::Parse(text);
  return parsed.has_value() ? *parsed : json::Value();
}

Device DeviceFromJson(const std::string& resource, const json::Value& value) {
  Device device;
  device.resource = resource;
  device.id = value["id"].Str();
  device.index = value["index"].AsInt();
  device.model = value["model"].Str();
  device.minor = value["minor"].AsInt(-1);
  device.memory_bytes = value["memory"].AsInt();
  device.pci_bus_id = value["pci"].Str();
  device.numa_node = value["numa"].AsInt(-1);
  for (const auto& [peer, count] : value["links"].members()) device.links[peer] = count.AsInt();
  device.unhealthy = value["unhealthy"].Str();
  return device;
}

json::Value ToJson(const Device& device) {
  json::Value out =
      json::Obj({{"id", device.id}, {"index", device.index}, {"model", device.model}});
  if (device.minor >= 0) out = std::move(out).Set("minor", device.minor);
  if (device.memory_bytes > 0) out = std::move(out).Set("memory", device.memory_bytes);
  if (!device.pci_bus_id.empty()) out = std::move(out).Set("pci", device.pci_bus_id);
  if (device.numa_node >= 0) out = std::move(out).Set("numa", device.numa_node);
  json::Object links;
  for (const auto& [peer, count] : device.links) links.emplace_back(peer, count);
  if (!links.empty()) out = std::move(out).Set("links", std::move(links));
  if (!device.unhealthy.empty()) out = std::move(out).Set("unhealthy", device.unhealthy);
  return out;
}

// How many whole devices of `resource` one container asks for.
int64_t Wanted(const json::Value& container, const std::string& resource) {
  const json::Value& resources = container["resources"];
  const char* const list = resources["requests"].Has(resource) ? "requests" : "limits";
  return AmountOf(ToResourceList(resources[list]), resource);
}

// Every container that asks for a share of the GPU has all of it.
void ShareOutGpu(const json::Value& pod, const std::vector<std::string>& ids,
                 AssignedDevices& out) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const json::Value& container : pod["spec"][list].items()) {
      if (Wanted(container, std::string(resource::kGpuMilli)) > 0)
        out[container["name"].Str()][std::string(resource::kNvidiaGpu)] = ids;
    }
  }
}

}  // namespace

DeviceSet DeviceSet::Lowest(int64_t count) const {
  DeviceSet out;
  DeviceSet rest = *this;
  for (size_t word = 0; word < words_.size(); ++word) {
    while (count > 0 && rest.words_[word] != 0) {
      const uint64_t lowest = rest.words_[word] & -rest.words_[word];
      out.words_[word] |= lowest;
      rest.words_[word] ^= lowest;
      --count;
    }
  }
  CHECK(count <= 0);
  return out;
}

std::vector<size_t> DeviceSet::Positions() const {
  std::vector<size_t> out;
  for (size_t word = 0; word < words_.size(); ++word) {
    for (uint64_t rest = words_[word]; rest != 0; rest &= rest - 1) {
      out.push_back(word * 64 + static_cast<size_t>(std::countr_zero(rest)));
    }
  }
  return out;
}

std::vector<Device> NodeDevices(const json::Value& node) {
  std::vector<Device> out;
  const json::Value parsed = ParsedAnnotation(node, kDevicesAnnotation);
  for (const auto& [resource, devices] : parsed.members()) {
    for (const json::Value& device : devices.items()) {
      out.push_back(DeviceFromJson(resource, device));
    }
  }
  const auto order = [](const Device& d) { return std::tie(d.resource, d.index, d.id); };
  std::sort(out.begin(), out.end(),
            [&](const Device& a, const Device& b) { return order(a) < order(b); });
  const auto same = [](const Device& a, const Device& b) {
    return a.resource == b.resource && a.id == b.id;
  };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  if (out.size() > kMaxDevicesPerNode) out.resize(kMaxDevicesPerNode);
  return out;
}

std::string WriteNodeDevices(const std::vector<Device>& devices) {
  std::map<std::string, json::Array> by_resource;
  for (const Device& device : devices) by_resource[device.resource].push_back(ToJson(device));
  json::Value out = json::Obj();
  for (auto& [resource, list] : by_resource) out = std::move(out).Set(resource, std::move(list));
  return json::Write(out);
}

AssignedDevices AssignedDevicesFromJson(const json::Value& value) {
  AssignedDevices out;
  for (const auto& [container, resources] : value.members()) {
    for (const auto& [resource, ids] : resources.members())
      out[container][resource] = json::ToStrings(ids);
  }
  return out;
}

json::Value ToJson(const AssignedDevices& assigned) {
  json::Object containers;
  for (const auto& [container, resources] : assigned) {
    json::Object lists;
    for (const auto& [resource, ids] : resources) lists.emplace_back(resource, json::Strings(ids));
    containers.emplace_back(container, json::Value(std::move(lists)));
  }
  return json::Value(std::move(containers));
}

AssignedDevices PodAssignedDevices(const json::Value& pod) {
  return AssignedDevicesFromJson(ParsedAnnotation(pod, kAssignedDevicesAnnotation));
}

std::string WriteAssignedDevices(const AssignedDevices& assigned) {
  return json::Write(ToJson(assigned));
}

AssignedDevices PodDevices(const json::Value& pod) {
  AssignedDevices out;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& container : pod["status"][list].items()) {
      for (const json::Value& resource : container["allocatedResourcesStatus"].items()) {
        for (const json::Value& device : resource["resources"].items())
          out[container["name"].Str()][resource["name"].Str()].push_back(
              device["resourceID"].Str());
      }
    }
  }
  return out.empty() ? PodAssignedDevices(pod) : out;
}

const json::Fields& PodDevicesFields() {
  static const json::Fields fields{{"metadata", "annotations", kAssignedDevicesAnnotation},
                                   {"status", "initContainerStatuses", "name"},
                                   {"status", "initContainerStatuses", "allocatedResourcesStatus"},
                                   {"status", "containerStatuses", "name"},
                                   {"status", "containerStatuses", "allocatedResourcesStatus"}};
  return fields;
}

DeviceLists PodGangDevices(const json::Value& pod) {
  DeviceLists out;
  const json::Value parsed = ParsedAnnotation(pod, kGangDevicesAnnotation);
  for (const auto& [resource, ids] : parsed.members()) out[resource] = json::ToStrings(ids);
  return out;
}

std::string WriteGangDevices(const DeviceLists& devices) {
  json::Object lists;
  for (const auto& [resource, ids] : devices) lists.emplace_back(resource, json::Strings(ids));
  return json::Write(json::Value(std::move(lists)));
}

bool SharesGangSandbox(const json::Value& metadata) {
  return metadata["annotations"][kGangSandboxAnnotation].AsString() == kGangSandboxShared;
}

AssignedDevices ShareOutDevices(const json::Value& pod,
                                const std::map<std::string, std::vector<std::string>>& chosen) {
  AssignedDevices out;
  const json::Value& spec = pod["spec"];
  for (const auto& [resource, ids] : chosen) {
    if (resource == resource::kNvidiaGpu) ShareOutGpu(pod, ids, out);
    size_t next = 0;  // ids before it belong to a sidecar for the whole life of the pod
    const auto give = [&](const json::Value& container, size_t from) {
      const auto count = static_cast<size_t>(Wanted(container, resource));
      if (count == 0) return from;
      const size_t end = std::min(from + count, ids.size());
      out[container["name"].Str()][resource] = {
          ids.begin() + static_cast<ptrdiff_t>(std::min(from, end)),
          ids.begin() + static_cast<ptrdiff_t>(end)};
      return end;
    };
    for (const json::Value& container : spec["initContainers"].items()) {
      const size_t end = give(container, next);
      if (container["restartPolicy"].AsString() == "Always") next = end;
    }
    for (const json::Value& container : spec["containers"].items()) next = give(container, next);
  }
  return out;
}

}  // namespace muster::cluster
