// src/cli/manifests.h
//
// Objects from files, as `-f` names them: a YAML or JSON file with any number of documents, a
// directory of such files, or "-" for standard input. Lists are taken apart.
//
// Thread: any; reads files.

#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace muster::cli {

inline constexpr size_t kMaxManifestBytes = 64 * 1024 * 1024;

struct ManifestObject {
  json::Value object;
  std::string source;   // "examples/job.yaml", "standard input"
  size_t document = 0;  // which one of the source, from 1 on; 0: it has one alone
};

// Invalid names the file and what is wrong: unreadable, not YAML, no kind, no name.
Result<std::vector<ManifestObject>> ReadManifests(const std::vector<std::string>& files,
                                                  bool recursive);
// For tests and for ReadManifests: the objects of one text.
Result<std::vector<ManifestObject>> ParseManifests(const std::string& text,
                                                   const std::string& source);

}  // namespace muster::cli
