// src/controllers/finalizers.h
//
// Finalizers of controllers: an object stays after its deletion until the controller that put one
// on it has taken it off.
//
// Thread: any (pure functions).

#pragma once

#include <string_view>

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

bool HasFinalizer(const json::Value& object, std::string_view finalizer);

// Merge patches for the object as it was seen, which the server refuses when it has changed since.
json::Value AddFinalizerPatch(const json::Value& seen, std::string_view finalizer);
json::Value RemoveFinalizerPatch(const json::Value& seen, std::string_view finalizer);

// Puts it on an object that is to stay, and takes it off one that is to go once `is_free`. Whether
// there was anything to do.
bool KeepUntilFree(const client::Target& target, const json::Value& object,
                   std::string_view finalizer, bool is_free, client::Reconciled& out);

}  // namespace muster::controllers
