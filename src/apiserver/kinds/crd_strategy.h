// src/apiserver/kinds/crd_strategy.h
//
// CustomResourceDefinitions: their conditions are decided in the very write that creates or changes
// them, so that the kind is served when the client has its answer.
//
// Thread: the loop thread.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/resource_registry.h"
#include "apiserver/strategy.h"

namespace muster::apiserver {

inline constexpr std::string_view kCrdCleanupFinalizer =
    "customresourcecleanup.apiextensions.k8s.io";

class CrdStrategy : public Strategy {
 public:
  // What is served at present: its names are taken.
  using Served = std::function<std::vector<ResourcePtr>()>;
  using OnCommit = std::function<void(const json::Value* before, const json::Value* after)>;
  CrdStrategy(Served served, OnCommit on_commit);

  bool has_generation() const override { return true; }
  bool allows_unconditional_update() const override { return false; }
  bool watches_commits() const override { return true; }
  Status PrepareCreate(WriteContext& context, json::Value& crd) override;
  Status PrepareUpdate(WriteContext& context, const json::Value& before,
                       json::Value& after) override;
  void Validate(const WriteContext& context, const json::Value* before, const json::Value& after,
                std::vector<StatusCause>& causes) override;
  void MarkDeleted(json::Value& crd) override;
  void Committed(const json::Value* before, const json::Value* after) override;

 private:
  // The part of status.conditions that says whether the names are free and the kind is served.
  json::Value StatusFor(const json::Value& crd, const json::Value& old_status, Time now) const;
  // What is taken: "" or the reason and message of the NamesAccepted condition.
  std::pair<std::string, std::string> FindNameConflict(const json::Value& crd) const;

  Served served_;
  OnCommit on_commit_;
};

bool IsEstablished(const json::Value& crd);

}  // namespace muster::apiserver
