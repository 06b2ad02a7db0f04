// src/controllers/endpointslice/slice_writes.h
//
// What the controllers of EndpointSlices share: from the slices that there are to those that there
// shall be.
//
// Thread: any.

#pragma once

#include <functional>
#include <vector>

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

// `have` with what of it is the controller's as in `want`; equal to `have` if that is so already.
using MergeSlice = std::function<json::Value(const json::Value& have, const json::Value& want)>;

// Makes and changes `wanted`, and deletes those of `owned` that are not among them; slices on their
// way out are left alone. Adds to `out`.
void WriteSlices(const client::Informer& slices, std::vector<json::Value> wanted,
                 const std::vector<client::ObjectKey>& owned, const MergeSlice& merge,
                 client::Reconciled& out);

// The endpoints, ports and labels of `want`.
json::Value MergeEndpoints(const json::Value& have, const json::Value& want);

}  // namespace muster::controllers
