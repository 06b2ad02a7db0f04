#include "apiserver/strategy.h"

namespace muster::apiserver {

bool Strategy::AwaitsFurniture(const WriteContext&, const json::Value&) { return false; }

Status Strategy::PrepareCreate(WriteContext&, json::Value&) { return Status::Ok(); }

Status Strategy::Reserve(WriteContext&, const json::Value*, json::Value&) { return Status::Ok(); }

void Strategy::Abandon(const json::Value*, const json::Value&) {}

Status Strategy::PrepareUpdate(WriteContext&, const json::Value&, json::Value&) {
  return Status::Ok();
}

Status Strategy::PrepareStatusUpdate(WriteContext&, const json::Value&, json::Value&) {
  return Status::Ok();
}

void Strategy::Validate(const WriteContext&, const json::Value*, const json::Value&,
                        std::vector<StatusCause>&) {}

Status Strategy::CheckDeletable(const schema::Kind&, const json::Value&) { return Status::Ok(); }

Deletion Strategy::PlanDeletion(const json::Value&, std::optional<int64_t>) { return {}; }

void Strategy::MarkDeleted(json::Value&) {}

bool Strategy::HasFurtherFinalizers(const json::Value&) { return false; }

void Strategy::Committed(const json::Value*, const json::Value*) {}

}  // namespace muster::apiserver
