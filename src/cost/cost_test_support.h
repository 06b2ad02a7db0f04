// src/cost/cost_test_support.h
//
// Nodes, pods and times for this folder's tests.

#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/check.h"
#include "base/time.h"
#include "cost/ledger.h"
#include "json/parse.h"

namespace muster::cost {

inline json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

// "2026-01-02T03:04:05Z", or "03:04:05" of that day.
inline Time At(const std::string& text) {
  const auto time = ParseTime(text.size() > 8 ? text : "2026-01-02T" + text + "Z");
  CHECK(time.has_value());
  return *time;
}

// Of 8 cores, 64 GiB and four H100s that it lists, since 00:00.
inline json::Value GpuNode(const std::string& name = "n1") {
  std::string devices;
  for (int i = 0; i < 4; ++i) {
    devices += fmt::format(R"({}{{"id":"GPU-{}-{}","index":{},"model":"NVIDIA H100 80GB HBM3"}})",
                           i == 0 ? "" : ",", name, i, i);
  }
  return Yaml(
      fmt::format("apiVersion: v1\nkind: Node\n"
                  "metadata:\n  name: {}\n  uid: uid-{}\n"
                  "  creationTimestamp: '2026-01-02T00:00:00Z'\n  labels: {{}}\n"
                  "  annotations:\n    muster.dev/devices: '{{\"nvidia.com/gpu\":[{}]}}'\n"
                  "status: {{capacity: {{cpu: '8', memory: 64Gi, nvidia.com/gpu: '4'}}}}\n",
                  name, name, devices));
}

// Of 2 cores and 4 GiB, that runs on the node since 01:00; `more` are fields of its metadata.
inline json::Value Pod(const std::string& name, const std::string& limits = "",
                       const std::string& more = "", const std::string& node = "n1") {
  return Yaml(fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}, namespace: d, uid: uid-{}{}}}\n"
      "spec:\n  nodeName: {}\n  containers:\n"
      "  - {{name: main, resources: {{requests: {{cpu: '2', memory: 4Gi}}, limits: {{{}}}}}}}\n"
      "status: {{phase: Running, startTime: '2026-01-02T01:00:00Z'}}\n",
      name, name, more, node, limits));
}

}  // namespace muster::cost
