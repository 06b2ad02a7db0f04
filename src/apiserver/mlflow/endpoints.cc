#include "apiserver/mlflow/endpoints.h"

#include <algorithm>
#include <utility>

#include "apiserver/mlflow/views.h"
#include "base/strings.h"
#include "json/write.h"
#include "schema/model_names.h"

namespace muster::apiserver {

using json::Value;

namespace {

// Of its JSON.
size_t RoughBytes(const Value& value) {
  constexpr size_t kSigns = 4;  // quotes, a colon, a comma
  size_t bytes = kSigns + value.AsString().size() + value.NumberToken().size();
  for (const Value& item : value.items()) bytes += RoughBytes(item);
  for (const auto& [key, member] : value.members())
    bytes += kSigns + key.size() + RoughBytes(member);
  return bytes;
}

}  // namespace

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
                            const FieldLookup& lookup, MaxResults results) {
  const Value& asked = arguments["max_results"];
  const int64_t most = asked.IsNull()     ? results.by_default
                       : asked.IsString() ? ParseInt(asked.AsString()).value_or(0)
                                          : asked.AsInt();
  if (most < 1 || most > results.most)
    return Error(Reason::kInvalid, "max_results must be 1 to {}", results.most);
  const std::string_view token = arguments["page_token"].AsString();
  const std::optional<int64_t> from = token.empty() ? 0 : ParseInt(token);
  if (!from || *from < 0)
    return Error(Reason::kInvalid, "page_token {:?} is not one that was given out", token);
  ASSIGN_OR_RETURN(objects, filter.Apply(std::move(objects), lookup));
  ASSIGN_OR_RETURN(objects, Ordered(std::move(objects), arguments["order_by"], lookup));
  return SearchPage{std::move(objects), static_cast<size_t>(*from), static_cast<size_t>(most)};
}

Result<Value> PageView(const char* name, const Result<SearchPage>& page,
                       const std::function<Value(const Value& object)>& view) {
  if (!page) return Error(page.error());
  const size_t most = std::min(page->most, kMaxSearchResults);
  json::Array views;
  size_t next = page->begin, bytes = 0;
  for (; next < page->objects.size() && views.size() < most; ++next) {
    Value shown = view(page->objects[next]);
    bytes += RoughBytes(shown);
    if (bytes > kMaxSearchPageBytes && !views.empty()) break;
    views.push_back(std::move(shown));
  }
  Value out = json::Obj({{name, std::move(views)}});
  if (next < page->objects.size())
    out = std::move(out).Set("next_page_token", std::to_string(next));
  return out;
}

void AnswerAway(const MlflowRequestPtr& request, std::function<Result<Value>()> work) {
  request->kinds->Away(
      [work = std::move(work)]() mutable -> Result<std::string> {
        // What it looks through is freed there, too.
        const auto once = std::exchange(work, nullptr);
        ASSIGN_OR_RETURN(const Value answer, once());
        return json::Write(answer);
      },
      [request](Result<std::string> text) { request->answer_text(std::move(text)); });
}

Value OwnerReference(const char* kind, const Value& owner) {
  return json::Obj({{"apiVersion", kRegistryGroupVersion},
                    {"kind", kind},
                    {"name", owner["metadata"]["name"]},
                    {"uid", owner["metadata"]["uid"]}});
}

Status NoSuchModel(std::string_view name) {
  return Status(Reason::kNotFound, fmt::format("Registered Model with name={} not found", name));
}

Status Renamed(const Status& status, const Status& not_found) {
  return status.reason() == Reason::kNotFound ? not_found : status;
}

KindsClient::Change OfModel(const std::string& name, KindsClient::Change change) {
  return [name, change = std::move(change)](const Value& model) -> Result<Value> {
    if (NameOf(model) != name) return Error(NoSuchModel(name));
    return change(model);
  };
}

void FindModel(const MlflowRequestPtr& request, const std::string& name, KindsClient::Done done) {
  request->kinds->Get("registeredmodels", schema::ModelObjectName(name),
                      [name, done = std::move(done)](Result<Value> model) mutable {
                        if (!model) return done(Error(Renamed(model.error(), NoSuchModel(name))));
                        if (NameOf(*model) != name) return done(Error(NoSuchModel(name)));
                        done(std::move(model));
                      });
}

}  // namespace muster::apiserver
