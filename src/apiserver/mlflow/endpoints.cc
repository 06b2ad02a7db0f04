#include "apiserver/mlflow/endpoints.h"

#include <algorithm>

#include "apiserver/mlflow/views.h"
#include "base/strings.h"
#include "schema/model_names.h"

namespace muster::apiserver {

using json::Value;

Result<std::string> NeedText(const Value& arguments, std::string_view name) {
  const Value& value = arguments[name];
  if (value.IsNumber()) return std::string(value.NumberToken());
  if (value.AsString().empty())
    return Error(Reason::kInvalid, "Missing value for required parameter '{}'", name);
  return value.Str();
}

bool AnswerError(const MlflowRequestPtr& request, const Status& status) {
  if (!status.ok()) request->answer(Error(status));
  return !status.ok();
}

Result<SearchPage> SearchIn(const Value& arguments, json::Array objects, const SearchFilter& filter,
                            const FieldLookup& lookup, int64_t default_results) {
  std::erase_if(objects, [&](const Value& each) { return !filter.Holds(each, lookup); });
  ASSIGN_OR_RETURN(objects, Ordered(std::move(objects), arguments["order_by"], lookup));
  const Value& asked = arguments["max_results"];
  const int64_t most = asked.IsNull()     ? default_results
                       : asked.IsString() ? ParseInt(asked.AsString()).value_or(0)
                                          : asked.AsInt();
  if (most < 1 || most > kMaxSearchResults)
    return Error(Reason::kInvalid, "max_results must be 1 to {}", kMaxSearchResults);
  const std::string_view token = arguments["page_token"].AsString();
  const std::optional<int64_t> from = token.empty() ? 0 : ParseInt(token);
  if (!from || *from < 0)
    return Error(Reason::kInvalid, "page_token {:?} is not one that was given out", token);
  SearchPage page;
  const size_t begin = std::min(objects.size(), static_cast<size_t>(*from));
  const size_t end = std::min(objects.size(), begin + static_cast<size_t>(most));
  page.objects.assign(objects.begin() + static_cast<ptrdiff_t>(begin),
                      objects.begin() + static_cast<ptrdiff_t>(end));
  if (end < objects.size()) page.next_token = std::to_string(end);
  return page;
}

Status NoSuchModel(std::string_view name) {
  return Status(Reason::kNotFound, fmt::format("Registered Model with name={} not found", name));
}

Status Renamed(const Status& status, const Status& not_found) {
  return status.reason() == Reason::kNotFound ? not_found : status;
}

KindsClient::Change OfModel(const std::string& name, KindsClient::Change change) {
  return [name, change = std::move(change)](const Value& model) -> Result<Value> {
    if (ModelNameOf(model) != name) return Error(NoSuchModel(name));
    return change(model);
  };
}

void FindModel(const MlflowRequestPtr& request, const std::string& name, KindsClient::Done done) {
  request->kinds->Get("registeredmodels", schema::ModelObjectName(name),
                      [name, done = std::move(done)](Result<Value> model) mutable {
                        if (!model) return done(Error(Renamed(model.error(), NoSuchModel(name))));
                        if (ModelNameOf(*model) != name) return done(Error(NoSuchModel(name)));
                        done(std::move(model));
                      });
}

}  // namespace muster::apiserver
