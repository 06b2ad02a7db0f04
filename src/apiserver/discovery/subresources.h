// src/apiserver/discovery/subresources.h
//
// Which subresources each kind has: one list for routing, discovery and OpenAPI.
//
// Thread: any.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schema/kind.h"
#include "schema/openapi_v3.h"

namespace muster::apiserver {

// Without `status`, which Kind::status_subresource says.
const std::vector<schema::Subresource>& SubresourcesOf(const schema::Kind& kind);

// get, list, watch, ... of a resource; of a subresource by its HTTP methods.
std::vector<std::string> ResourceVerbs(const schema::Kind& kind);
std::vector<std::string> VerbsOfMethods(const std::vector<std::string>& methods);

}  // namespace muster::apiserver
