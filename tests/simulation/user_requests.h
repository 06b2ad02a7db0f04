// tests/simulation/user_requests.h
//
// What users of a story do so that it happens for certain: they try again until the server takes
// it.
//
// Thread: the simulation's.

#pragma once

#include <functional>
#include <string>

#include "client/api_client.h"
#include "json/value.h"

namespace muster::simulation {

class World;

// REQUIRES: one document.
json::Value Yaml(const std::string& text);

// Until it is there. What the server calls invalid is a violation; what it forbids is not tried
// again.
void CreateUntilTaken(World& world, const client::Resource& resource, const json::Value& object);

// `change` gives the new object; null: nothing is to be done. So it is with an object that is gone.
void EditUntilTaken(World& world, const client::Target& target,
                    std::function<json::Value(json::Value)> change);

}  // namespace muster::simulation
