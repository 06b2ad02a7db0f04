// src/cli/sync_plan.h
//
// What `muster sync` remembers and reports: which objects it applied (its inventory), what others
// changed meanwhile (drift), and how the objects do.
//
// Thread: any (pure functions).

#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/applier.h"
#include "client/api_client.h"
#include "json/value.h"

namespace muster::cli {

// On every object that a sync applied: the sync's name. Objects of another sync are left alone.
inline constexpr const char* kSyncLabel = "muster.dev/sync";
inline constexpr size_t kMaxDriftLines = 5;  // fields that are named; of the others how many

// A name for a repository and a path in it, as labels and objects may have it.
std::string SyncNameOf(const std::string& repository, const std::string& path);

// The repository as others may read it: "https://example.com/x.git" of
// "https://user:token@example.com/x.git".
std::string WithoutCredentials(const std::string& repository);

// One entry of the inventory, and back; a target without a resource if it is none.
std::string EntryOf(const client::Target& target);
client::Target TargetOf(const std::string& entry);
using Entries = std::set<std::string, std::less<>>;
// A list of them, as JSON, and back; an error if it is none.
Result<Entries> EntriesOf(std::string_view text);
std::string TextOf(const Entries& entries);
// Entries of `before` that are not among `now`.
std::vector<std::string> LeftOut(const Entries& before, const Entries& now);

// Fields that an apply changed although the manifest says what it said before: somebody else had
// changed them. "spec.replicas: 5 -> 2"; of a Secret "data.password". Empty if there are none.
std::vector<std::string> DriftOf(const Applied& applied, const json::Value& manifest);

// "Succeeded", "Available", "Running": what the object's status says in one word; "" if nothing.
std::string StateOf(const json::Value& object);

}  // namespace muster::cli
