// src/agent/images/image_record.h
//
// ImageRecord: one image of the node's cache: what it is called, where its files are, and how its
// configuration says that it is run.
//
// Thread: any (values).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/images/image_reference.h"
#include "base/time.h"
#include "json/value.h"

namespace muster::agent {

// The part of an OCI image's configuration that a container takes over.
struct ImageConfig {
  std::vector<std::string> entrypoint, cmd;
  std::vector<std::string> environment;  // "NAME=value"
  std::string user;                      // "", "1000", "nginx:nginx", ...
  std::string working_dir;
  std::string stop_signal;  // "SIGQUIT", "3" or ""

  bool operator==(const ImageConfig&) const = default;
};

struct ImageRecord {
  std::string id;    // "sha256:...", the digest of its configuration, as docker's image ID
  std::string root;  // the folder below DIR/images/roots that holds its files
  std::vector<std::string> names;    // "docker.io/library/nginx:latest"
  std::vector<std::string> digests;  // "docker.io/library/nginx@sha256:..."
  std::vector<std::string> blobs;    // "sha256:...": manifest, configuration and layers
  int64_t size_bytes = 0;            // of configuration and layers, compressed
  int64_t disk_bytes = 0;            // of the files and the blobs
  Time last_used{};
  ImageConfig config;

  bool IsCalled(const ImageReference& reference) const;
  // As in a container's status.imageID: with the repository if a registry knows it.
  std::string ImageId() const { return digests.empty() ? id : digests.back(); }
};

// The fields of `config` are those of application/vnd.oci.image.config.v1+json.
ImageConfig ParseImageConfig(const json::Value& config);

json::Value ToJson(const ImageConfig& config);
ImageConfig ImageConfigFromJson(const json::Value& value);
json::Value ToJson(const ImageRecord& record);
ImageRecord ImageRecordFromJson(const json::Value& value);

}  // namespace muster::agent
