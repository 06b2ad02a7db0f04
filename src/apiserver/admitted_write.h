// src/apiserver/admitted_write.h
//
// Writes on their way through admission: what PUT, PATCH and DELETE share once they know what they
// want. Webhooks take their time, so the object may have changed when they have answered; then
// everything begins anew, as upstream.
//
// Thread:     the loop thread. `done` runs after the commit, or at once when the answer is known.

#pragma once

#include <functional>
#include <string>

#include "apiserver/call.h"
#include "apiserver/core.h"
#include "apiserver/deletion.h"
#include "apiserver/object_writer.h"
#include "apiserver/resource_registry.h"
#include "apiserver/update.h"

namespace muster::apiserver {

inline constexpr int kMaxAdmissionAttempts = 5;  // then Conflict

// What the client wants of the object as it is now; it conforms to the stored version.
using WantedObject = std::function<Result<json::Value>(const json::Value& before)>;

void AdmittedUpdate(Core& core, const CallPtr& call, const ResourcePtr& resource, UpdateScope scope,
                    bool dry_run, WantedObject wanted, WriteDone done);

void AdmittedDelete(Core& core, const CallPtr& call, const ResourcePtr& resource,
                    const std::string& ns, const std::string& name, const DeleteOptions& options,
                    DeleteDone done);

}  // namespace muster::apiserver
