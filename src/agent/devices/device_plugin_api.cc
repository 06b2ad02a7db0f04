#include "agent/devices/device_plugin_api.h"

#include "agent/devices/proto_wire.h"

namespace muster::agent {
namespace {

std::string Text(const ProtoField& field) { return std::string(field.bytes); }

// An entry of map<string, string>.
Status ReadEntry(std::string_view message, std::map<std::string, std::string>& into) {
  std::string key, value;
  RETURN_IF_ERROR(ReadFields(message, [&](const ProtoField& field) {
    if (field.number == 1) key = Text(field);
    if (field.number == 2) value = Text(field);
    return Status::Ok();
  }));
  into[key] = value;
  return Status::Ok();
}

Status ReadNumaNode(std::string_view topology, PluginDevice& device) {
  return ReadFields(topology, [&](const ProtoField& node) {
    if (node.number != 1 || !node.is_bytes || device.numa_node >= 0) return Status::Ok();
    device.numa_node = 0;  // an absent ID
    return ReadFields(node.bytes, [&](const ProtoField& field) {
      if (field.number == 1) device.numa_node = static_cast<int64_t>(field.value);
      return Status::Ok();
    });
  });
}

Status ReadDevice(std::string_view message, PluginDevice& device) {
  return ReadFields(message, [&](const ProtoField& field) {
    if (field.number == 1) device.id = Text(field);
    if (field.number == 2) device.healthy = field.bytes == "Healthy";
    if (field.number == 3 && field.is_bytes) return ReadNumaNode(field.bytes, device);
    return Status::Ok();
  });
}

Status ReadMount(std::string_view message, PluginAllocation& into) {
  PluginAllocation::Mount& mount = into.mounts.emplace_back();
  return ReadFields(message, [&](const ProtoField& field) {
    if (field.number == 1) mount.container_path = Text(field);
    if (field.number == 2) mount.host_path = Text(field);
    if (field.number == 3) mount.read_only = field.value != 0;
    return Status::Ok();
  });
}

Status ReadDeviceNode(std::string_view message, PluginAllocation& into) {
  PluginAllocation::DeviceNode& device = into.devices.emplace_back();
  return ReadFields(message, [&](const ProtoField& field) {
    if (field.number == 1) device.container_path = Text(field);
    if (field.number == 2) device.host_path = Text(field);
    if (field.number == 3) device.permissions = Text(field);
    return Status::Ok();
  });
}

Status ReadContainerResponse(std::string_view message, PluginAllocation& out) {
  return ReadFields(message, [&](const ProtoField& field) {
    if (!field.is_bytes) return Status::Ok();
    if (field.number == 1) return ReadEntry(field.bytes, out.environment);
    if (field.number == 2) return ReadMount(field.bytes, out);
    if (field.number == 3) return ReadDeviceNode(field.bytes, out);
    if (field.number == 4) return ReadEntry(field.bytes, out.annotations);
    if (field.number != 5) return Status::Ok();
    return ReadFields(field.bytes, [&](const ProtoField& name) {
      if (name.number == 1) out.cdi_devices.push_back(Text(name));
      return Status::Ok();
    });
  });
}

}  // namespace

Result<RegisterRequest> ReadRegisterRequest(std::string_view message) {
  RegisterRequest out;
  RETURN_IF_ERROR(ReadFields(message, [&](const ProtoField& field) {
    if (field.number == 1) out.version = Text(field);
    if (field.number == 2) out.endpoint = Text(field);
    if (field.number == 3) out.resource = Text(field);
    return Status::Ok();
  }));
  return out;
}

Result<PluginOptions> ReadPluginOptions(std::string_view message) {
  PluginOptions out;
  RETURN_IF_ERROR(ReadFields(message, [&](const ProtoField& field) {
    if (field.number == 1) out.pre_start_required = field.value != 0;
    if (field.number == 2) out.preferred_allocation = field.value != 0;
    return Status::Ok();
  }));
  return out;
}

Result<std::vector<PluginDevice>> ReadDeviceList(std::string_view message) {
  std::vector<PluginDevice> out;
  RETURN_IF_ERROR(ReadFields(message, [&](const ProtoField& field) {
    if (field.number != 1 || !field.is_bytes) return Status::Ok();
    return ReadDevice(field.bytes, out.emplace_back());
  }));
  return out;
}

std::string WriteAllocateRequest(const std::vector<std::string>& ids) {
  std::string container;
  for (const std::string& id : ids) AppendBytes(container, 1, id);
  std::string out;
  AppendBytes(out, 1, container);
  return out;
}

Result<PluginAllocation> ReadAllocateResponse(std::string_view message) {
  PluginAllocation out;
  int containers = 0;
  RETURN_IF_ERROR(ReadFields(message, [&](const ProtoField& field) {
    if (field.number != 1 || !field.is_bytes) return Status::Ok();
    ++containers;
    return ReadContainerResponse(field.bytes, out);
  }));
  if (containers != 1)
    return Error(Reason::kInvalid, "it answers for {} containers, not for one", containers);
  return out;
}

std::string WritePreStartRequest(const std::vector<std::string>& ids) {
  std::string out;
  for (const std::string& id : ids) AppendBytes(out, 1, id);
  return out;
}

}  // namespace muster::agent
