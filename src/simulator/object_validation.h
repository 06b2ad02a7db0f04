// src/simulator/object_validation.h
//
// Whether objects that somebody means to submit would be taken: what a server says of fields that
// it does not know, of wrong types and of values that are not allowed. Not what depends on the
// cluster: quotas, webhooks, names that are taken.
//
// Thread: any (pure functions).

#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace muster::simulator {

// The first fault, behind the file's name. Objects without an apiVersion, and of kinds that muster
// does not know, are not judged.
Status ValidateObjects(std::string_view file, const std::vector<json::Value>& objects);

}  // namespace muster::simulator
