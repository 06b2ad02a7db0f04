#include "apiserver/list_parameters.h"

#include "apiserver/errors.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

Status Forbid(std::string_view field, std::string_view detail) {
  return InvalidOptionsError("ListOptions", {ForbiddenField(field, detail)});
}

Result<RevisionMatch> ParseMatch(std::string_view text) {
  if (text.empty()) return RevisionMatch::kUnset;
  if (text == "NotOlderThan") return RevisionMatch::kNotOlderThan;
  if (text == "Exact") return RevisionMatch::kExact;
  return Error(InvalidOptionsError(
      "ListOptions",
      {{"FieldValueNotSupported", "resourceVersionMatch",
        fmt::format("Unsupported value: {}: supported values: \"Exact\", \"NotOlderThan\", \"\"",
                    json::Write(json::Value(text)))}}));
}

Status CheckListMatch(const ListParameters& list) {
  if (list.send_initial_events)
    return Forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
  if (list.match == RevisionMatch::kUnset) return Status::Ok();
  if (!list.revision) {
    return Forbid("resourceVersionMatch",
                  "resourceVersionMatch is forbidden unless resourceVersion is provided");
  }
  if (!list.continue_token.empty()) {
    return Forbid("resourceVersionMatch",
                  "resourceVersionMatch is forbidden when continue is provided");
  }
  if (list.match == RevisionMatch::kExact && *list.revision == 0) {
    return Forbid("resourceVersionMatch",
                  "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"");
  }
  return Status::Ok();
}

Status CheckWatchMatch(const ListParameters& list) {
  if (list.send_initial_events) {
    if (list.match != RevisionMatch::kNotOlderThan) {
      return Forbid("resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
  } else if (list.match != RevisionMatch::kUnset) {
    return Forbid(
        "resourceVersionMatch",
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  }
  return Status::Ok();
}

}  // namespace

Result<ListParameters> ParseListParameters(const RequestInfo& info, bool watch) {
  ListParameters list;
  const net::Query& query = info.query;
  ASSIGN_OR_RETURN(const std::optional<int64_t> limit, IntParameter(query, "limit"));
  list.limit = std::max<int64_t>(limit.value_or(0), 0);
  ASSIGN_OR_RETURN(const std::optional<int64_t> timeout, IntParameter(query, "timeoutSeconds"));
  list.timeout_seconds = std::max<int64_t>(timeout.value_or(0), 0);
  list.continue_token = query.Get("continue");
  list.bookmarks = query.GetBool("allowWatchBookmarks");
  if (const std::string_view initial = query.Get("sendInitialEvents"); !initial.empty()) {
    list.send_initial_events = query.GetBool("sendInitialEvents");
  }
  ASSIGN_OR_RETURN(list.match, ParseMatch(query.Get("resourceVersionMatch")));
  if (const std::string_view text = query.Get("resourceVersion"); !text.empty()) {
    list.revision = ParseInt(text);
    if (!list.revision || *list.revision < 0) {
      return Error(InvalidOptionsError(
          "ListOptions",
          {InvalidField("resourceVersion", json::Value(text), "must be a decimal number")}));
    }
  }
  RETURN_IF_ERROR(watch ? CheckWatchMatch(list) : CheckListMatch(list));
  if (!list.continue_token.empty() && list.revision.value_or(0) != 0) {
    return Error(Reason::kBadRequest,
                 "specifying resource version is not allowed when using continue");
  }
  return list;
}

std::string EncodeContinue(const ContinueToken& token) {
  return Base64Encode(json::Write(
      json::Obj({{"v", "meta.k8s.io/v1"}, {"rv", token.revision}, {"start", token.after}})));
}

Result<ContinueToken> DecodeContinue(std::string_view text, std::string_view prefix) {
  const std::optional<std::string> decoded = Base64Decode(text);
  const Result<json::Value> value = json::Parse(decoded.value_or(""));
  ContinueToken token;
  if (value) {
    token.revision = (*value)["rv"].AsInt();
    token.after = (*value)["start"].Str();
  }
  if (token.revision == 0 || token.revision < ContinueToken::kLatest ||
      !token.after.starts_with(prefix)) {
    return Error(Reason::kBadRequest,
                 "continue key is not valid: list again without the continue parameter");
  }
  return token;
}

}  // namespace muster::apiserver
