// src/schema/own_crds.h
//
// The CustomResourceDefinition objects of our own kinds (PyTorchJob, PodGroup), made from their
// .proto files: the API server stores them at its first boot and serves the kinds through them like
// any other CRD.
//
// Thread: any (pure).

#pragma once

#include <vector>

#include "json/value.h"
#include "schema/kind.h"

namespace muster::schema {

// Ready to be created: apiVersion, kind, metadata.name and spec, with fully inlined structural
// schemas, of which equal parts are the same in memory. No status. They live as long as the
// program.
const std::vector<json::Value>& OwnCrds();

// The CRD of one kind of Registry::own_custom_kinds(), with all its versions; the first of them in
// the order of the .proto files is the one that is stored; null for another kind.
json::Value CrdOf(const Kind& kind);

}  // namespace muster::schema
