// src/cli/resource_arguments.h
//
// Which objects a command line means: "TYPE NAME...", "TYPE/NAME ...", "TYPE[,TYPE...]", with -l
// and --all.
//
// Thread: the loop thread.

#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/resource_finder.h"

namespace muster::cli {

struct Wanted {
  ApiResource resource;
  std::vector<std::string> names;  // empty: the whole collection
};

// In the order written; one entry per type. Invalid for a line that kubectl would refuse, too.
Result<std::vector<Wanted>> ParseWanted(ResourceFinder& finder,
                                        const std::vector<std::string>& positionals);

// "pod NAME" or "pod/NAME", exactly one; a bare NAME is of type `otherwise`.
struct OneObject {
  ApiResource resource;
  std::string name;
};
Result<OneObject> ParseOne(ResourceFinder& finder, const std::vector<std::string>& positionals,
                           std::string_view otherwise);

// The namespace in which to look for `resource`: "" for cluster-scoped kinds.
std::string NamespaceFor(const ApiResource& resource, const Session& session);

}  // namespace muster::cli
