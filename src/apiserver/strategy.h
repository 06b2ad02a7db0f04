// src/apiserver/strategy.h
//
// Strategy: what is special about one kind. The generic handlers do what all kinds share (metadata,
// defaulting, validation, status isolation, finalizers) and ask the strategy at fixed points. Most
// kinds need none.
//
// Life cycle: made with the ResourceRegistry, lives as long as the ApiServer.
// Thread:     the loop thread.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/authentication.h"
#include "base/status.h"
#include "base/time.h"
#include "json/value.h"
#include "schema/kind.h"
#include "store/store.h"

namespace muster::apiserver {

// One write while it is being prepared.
struct WriteContext {
  const schema::Kind& kind;
  std::string ns, name;  // name may still be "" when generateName is used
  Time now;
  bool dry_run = false;
  std::vector<std::string> warnings;
  const User* user = nullptr;  // who writes; nullptr: this server itself
};

// How a DELETE is carried out for an object without finalizers.
struct Deletion {
  bool graceful = false;             // mark it and wait for a DELETE with grace period 0
  int64_t grace_period_seconds = 0;  // when graceful
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual store::Durability durability() const { return store::Durability::kDurable; }
  // PUT without metadata.resourceVersion.
  virtual bool allows_unconditional_update() const { return true; }
  // metadata.generation counts changes of the spec.
  virtual bool has_generation() const { return false; }
  // So do, for some kinds, changes of the annotations.
  virtual bool annotations_count_for_generation() const { return false; }
  // A DELETE that does not say what becomes of its dependents leaves them alone.
  virtual bool orphans_by_default() const { return false; }
  // DELETE answers with the last state of the object rather than with a Status.
  virtual bool returns_deleted_object() const { return false; }
  // POST keeps the status that the client sent.
  virtual bool keeps_status_on_create() const { return false; }

  // PrepareCreate() would refuse `object` for want of something that a controller puts into every
  // new namespace: a POST looks again for a while before it asks.
  virtual bool AwaitsFurniture(const WriteContext& context, const json::Value& object);
  // Before defaulting: fills and drops what the server decides.
  virtual Status PrepareCreate(WriteContext& context, json::Value& object);
  // After validation, last before the write: reservations (cluster addresses) happen here, so
  // nothing else can fail.
  virtual Status Reserve(WriteContext& context, const json::Value* before, json::Value& object);
  // Gives back what Reserve took for `object` and `before` has not when the write failed after all.
  virtual void Abandon(const json::Value* before, const json::Value& object);

  virtual Status PrepareUpdate(WriteContext& context, const json::Value& before,
                               json::Value& after);
  virtual Status PrepareStatusUpdate(WriteContext& context, const json::Value& before,
                                     json::Value& after);
  // Checks that the schema cannot express; `before` is nullptr on create.
  virtual void Validate(const WriteContext& context, const json::Value* before,
                        const json::Value& after, std::vector<StatusCause>& causes);

  // Forbidden for what may not be deleted at all.
  virtual Status CheckDeletable(const schema::Kind& kind, const json::Value& object);
  // `requested` is DeleteOptions.gracePeriodSeconds.
  virtual Deletion PlanDeletion(const json::Value& object, std::optional<int64_t> requested);
  // Changes the object that a DELETE marks (namespaces: phase Terminating).
  virtual void MarkDeleted(json::Value& object);
  // More than metadata.finalizers may hold an object back (namespaces: spec.finalizers).
  virtual bool HasFurtherFinalizers(const json::Value& object);

  // After the commit. `before` is nullptr for a creation, `after` for a removal.
  virtual void Committed(const json::Value* before, const json::Value* after);
  // Committed() is called (and the trees are parsed for it) only for strategies that say so.
  virtual bool watches_commits() const { return false; }
};

}  // namespace muster::apiserver
