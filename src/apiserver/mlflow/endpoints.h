// src/apiserver/mlflow/endpoints.h
//
// The endpoints of MLflow's REST API 2.0 that are served: each reads its arguments, does its steps
// through a KindsClient, and answers once.
//
// Thread: the loop thread.

#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "apiserver/mlflow/kinds_client.h"
#include "apiserver/mlflow/search_filter.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::apiserver {

// Of one page of a search: objects, and bytes as JSON, about; one object is always told.
inline constexpr size_t kMaxSearchResults = 1000;
inline constexpr size_t kMaxSearchPageBytes = 2 * 1024 * 1024;
// Of one runs/search.
inline constexpr size_t kMaxSearchedExperiments = 100;
// Metrics, parameters and tags of one runs/log-batch.
inline constexpr size_t kMaxLoggedAtOnce = 1000;

struct MlflowRequest {
  KindsClientPtr kinds;
  json::Value arguments;
  KindsClient::Done answer;
  Function<void(Result<std::string> json)> answer_text;
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
std::span<const Endpoint> ExperimentEndpoints();

// The text of an argument; Invalid if it is missing or empty.
Result<std::string> NeedText(const json::Value& arguments, std::string_view name);
// Answers an error; true if it did.
bool AnswerError(const MlflowRequestPtr& request, const Status& status);

// Those that the arguments filter and order_by ask for, from page_token on.
struct SearchPage {
  json::Array objects;
  size_t begin = 0;
  size_t most = 0;  // as max_results says
};
// What max_results may be: a page has less where it would be too large.
struct MaxResults {
  int64_t by_default, most;
};
Result<SearchPage> SearchIn(const json::Value& arguments, json::Array objects,
                            const SearchFilter& filter, const FieldLookup& lookup,
                            MaxResults results);
// {NAME: views of a page, "next_page_token": where the next one begins}.
Result<json::Value> PageView(const char* name, const Result<SearchPage>& page,
                             const std::function<json::Value(const json::Value& object)>& view);
// Answers what `work` makes, away from the loop: searches of thousands of objects would hold it.
// `work` shares nothing that changes.
void AnswerAway(const MlflowRequestPtr& request, std::function<Result<json::Value>()> work);

// The RegisteredModel of that name; NotFound in MLflow's words.
void FindModel(const MlflowRequestPtr& request, const std::string& name, KindsClient::Done done);
Status NoSuchModel(std::string_view name);
// The Experiment of that id, which may be Default.
void FindExperiment(const MlflowRequestPtr& request, const std::string& id, KindsClient::Done done);
json::Value OwnerReference(const char* kind, const json::Value& owner);
// A change that is refused if the object is of another model.
KindsClient::Change OfModel(const std::string& name, KindsClient::Change change);
// NotFound says which model, or which run, is missing.
Status Renamed(const Status& status, const Status& not_found);

}  // namespace muster::apiserver
