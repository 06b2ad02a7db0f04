// src/apiserver/mlflow/endpoints.h
//
// The endpoints of MLflow's REST API 2.0 that are served: each reads its arguments, does its steps
// through a KindsClient, and answers once.
//
// Thread: the loop thread.

#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "apiserver/mlflow/kinds_client.h"
#include "apiserver/mlflow/search_filter.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::apiserver {

inline constexpr int64_t kMaxSearchResults = 1000;
// Metrics, parameters and tags of one runs/log-batch.
inline constexpr size_t kMaxLoggedAtOnce = 1000;

struct MlflowRequest {
  KindsClientPtr kinds;
  json::Value arguments;
  KindsClient::Done answer;
};
using MlflowRequestPtr = std::shared_ptr<MlflowRequest>;

struct Endpoint {
  std::string_view method;  // "GET", "POST", "PATCH", "DELETE"
  std::string_view path;    // "registered-models/create"
  void (*run)(const MlflowRequestPtr&);
};

std::span<const Endpoint> ModelEndpoints();
std::span<const Endpoint> VersionEndpoints();
std::span<const Endpoint> RunEndpoints();

// The text of an argument; Invalid if it is missing or empty.
Result<std::string> NeedText(const json::Value& arguments, std::string_view name);
// Answers an error; true if it did.
bool AnswerError(const MlflowRequestPtr& request, const Status& status);

// A page of those that the arguments filter, order_by, max_results and page_token ask for.
struct SearchPage {
  json::Array objects;
  std::string next_token;  // "" at the end
};
Result<SearchPage> SearchIn(const json::Value& arguments, json::Array objects,
                            const SearchFilter& filter, const FieldLookup& lookup,
                            int64_t default_results);

// The RegisteredModel of that name; NotFound in MLflow's words.
void FindModel(const MlflowRequestPtr& request, const std::string& name, KindsClient::Done done);
Status NoSuchModel(std::string_view name);
// A change that is refused if the object is of another model.
KindsClient::Change OfModel(const std::string& name, KindsClient::Change change);
// NotFound says which model, or which run, is missing.
Status Renamed(const Status& status, const Status& not_found);

}  // namespace muster::apiserver
