// src/apiserver/object_writer.h
//
// The three ways in which a prepared object reaches the store, shared by all write handlers:
// create, replace (which also removes an object whose last finalizer has gone), remove.
//
// Thread:     the loop thread. `done` runs after the commit, or at once when the answer is known.
// Invariants: `before` was read with GetLatest() in the same loop task, so the store's precondition
//             holds; a dry run goes through everything but the store.

#pragma once

#include <string>
#include <string_view>

#include "apiserver/core.h"
#include "apiserver/strategy.h"
#include "base/status.h"
#include "base/task.h"
#include "json/value.h"
#include "store/store.h"

namespace muster::apiserver {

inline constexpr int kMaxNameAttempts = 8;  // draws of a generateName suffix before AlreadyExists
inline constexpr int kNameSuffixLetters = 5;
// A longer generateName is cut: names have at most 63 letters.
inline constexpr size_t kMaxGeneratedPrefix = 58;

using WriteDone = Function<void(Result<store::EntryPtr>)>;

// An object of a kind as it is in the store, pending writes included.
struct Found {
  store::EntryPtr entry;
  json::Value object;
};
Result<Found> FindObject(Core& core, const schema::Kind& kind, std::string_view ns,
                         std::string_view name);

// NotFound if the namespace does not exist; Forbidden (cause NamespaceTerminating) if it is going.
Status CheckNamespace(Core& core, const schema::Kind& kind, std::string_view ns,
                      std::string_view name);

// What a new object may not say of itself, whoever says it: another namespace, a resourceVersion.
Status CheckMetadataForCreate(const schema::Kind& kind, std::string_view ns,
                              const json::Value& object);

// Fills metadata (name, uid, times, generation), asks the strategy and defaults. `context.name` is
// set.
Result<json::Value> FillCreate(Core& core, const Resource& resource, WriteContext& context,
                               json::Value object);
// The same once webhooks have changed what FillCreate made of the client's object: `filled` keeps
// its UID and its time, and its name unless the client gave none. `context.name` is set.
Result<json::Value> RefillCreate(const Resource& resource, WriteContext& context,
                                 const json::Value& filled, json::Value changed);
// Invalid, or Ok.
Status ValidateCreate(const Resource& resource, const WriteContext& context,
                      const json::Value& object);
// Fills and validates.
Result<json::Value> PrepareCreate(Core& core, const Resource& resource, WriteContext& context,
                                  json::Value object);
// AlreadyExists, or the entry. REQUIRES: an object that was filled and validated.
void CreateObject(Core& core, ResourcePtr resource, WriteContext& context, json::Value object,
                  WriteDone done);

// `after` replaces `before`; nothing is written when they are equal. Removes the object when it was
// marked for deletion and nothing holds it any more.
void ReplaceObject(Core& core, ResourcePtr resource, WriteContext& context, const Found& before,
                   json::Value after, WriteDone done);

// `done` gets the last state.
void RemoveObject(Core& core, ResourcePtr resource, bool dry_run, const Found& found,
                  WriteDone done);

// An answer that nobody stores: `object`, at no revision.
store::EntryPtr EntryOf(const schema::Kind& kind, const json::Value& object);

// Marked for deletion, no finalizer left, no grace period running.
bool MayBeRemoved(const Resource& resource, const json::Value& object);

}  // namespace muster::apiserver
