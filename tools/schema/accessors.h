// tools/schema/accessors.h
//
// Writes the accessor header of one .proto file: a View class per message, see src/schema/view.h
// for the contract.

#pragma once

#include <string>

#include "google/protobuf/descriptor.h"

namespace muster::schema_tool {

// "schema/k8s/core_v1.proto" -> "core_v1": the name of the header and of the namespace below
// muster.
std::string BaseName(const google::protobuf::FileDescriptor& file);
// False for files whose messages are no JSON objects of ours to read (quantities, the protobuf
// envelope).
bool HasAccessors(const google::protobuf::FileDescriptor& file);
std::string Accessors(const google::protobuf::FileDescriptor& file);

// "podIP" -> "pod_ip", "clusterIPs" -> "cluster_ips", "nprocPerNode" -> "nproc_per_node".
std::string SnakeCase(const std::string& json_name);

}  // namespace muster::schema_tool
