#include "apiserver/delete_options.h"

#include <vector>

#include "apiserver/errors.h"
#include "apiserver/object_codec.h"
#include "json/write.h"
#include "schema/conform.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

Result<Propagation> ParsePropagation(std::string_view text) {
  if (text == "Background") return Propagation::kBackground;
  if (text == "Foreground") return Propagation::kForeground;
  if (text == "Orphan") return Propagation::kOrphan;
  return Error(InvalidOptionsError(
      "DeleteOptions",
      {{"FieldValueNotSupported", "propagationPolicy",
        fmt::format(
            "Unsupported value: {}: supported values: \"Background\", \"Foreground\", \"Orphan\"",
            json::Write(json::Value(text)))}}));
}

Status ReadPropagation(DeleteOptions& options, std::string_view policy,
                       std::optional<bool> orphan) {
  if (!policy.empty() && orphan) {
    return InvalidOptionsError(
        "DeleteOptions",
        {InvalidField("propagationPolicy", json::Value(policy),
                      "orphanDependents and deletionPropagation cannot be both set")});
  }
  if (!policy.empty()) {
    ASSIGN_OR_RETURN(options.propagation, ParsePropagation(policy));
  } else if (orphan) {
    options.propagation = *orphan ? Propagation::kOrphan : Propagation::kBackground;
  }
  return Status::Ok();
}

Status ReadBody(DeleteOptions& options, const json::Value& sent) {
  const std::string_view kind = sent["kind"].AsString();
  if (!kind.empty() && kind != "DeleteOptions") {
    return Error(Reason::kBadRequest, "the body of a DELETE must be DeleteOptions, not {}", kind);
  }
  // A body of another shape must not count as one without wishes: the object would be gone.
  const schema::Schema* schema = schema::Registry::BuiltIn().FindMessage("v1", "DeleteOptions");
  ASSIGN_OR_RETURN(const json::Value body, schema::Conform(*schema, sent, {}, nullptr));
  options.grace_period_seconds = body["gracePeriodSeconds"].Int();
  options.uid = body["preconditions"]["uid"].Str();
  options.resource_version = body["preconditions"]["resourceVersion"].Str();
  for (const json::Value& value : body["dryRun"].items())
    options.dry_run |= value.AsString() == "All";
  std::optional<bool> orphan;
  if (const json::Value* value = body.Find("orphanDependents");
      value != nullptr && value->IsBool()) {
    orphan = value->AsBool();
  }
  return ReadPropagation(options, body["propagationPolicy"].AsString(), orphan);
}

}  // namespace

Result<DeleteOptions> ReadDeleteOptions(const json::Value& body, DeleteOptions options) {
  if (!body.IsNull()) RETURN_IF_ERROR(ReadBody(options, body));
  if (options.grace_period_seconds && *options.grace_period_seconds < 0) {
    return Error(InvalidOptionsError(
        "DeleteOptions",
        {InvalidField("gracePeriodSeconds", json::Value(*options.grace_period_seconds),
                      "must be greater than or equal to 0")}));
  }
  return options;
}

Result<DeleteOptions> ParseDeleteOptions(const Call& call) {
  DeleteOptions options;
  const net::Query& query = call.info().query;
  ASSIGN_OR_RETURN(options.dry_run, DryRunOf(call.info(), "DeleteOptions"));
  ASSIGN_OR_RETURN(options.grace_period_seconds, IntParameter(query, "gracePeriodSeconds"));
  std::optional<bool> orphan;
  if (query.Has("orphanDependents")) orphan = query.GetBool("orphanDependents");
  RETURN_IF_ERROR(ReadPropagation(options, query.Get("propagationPolicy"), orphan));
  if (call.request().body.empty() && call.request().value.IsNull())
    return ReadDeleteOptions(json::Value(), options);
  ASSIGN_OR_RETURN(const DecodedBody body,
                   DecodeBody(call.request().headers.Get("Content-Type"), call.request()));
  return ReadDeleteOptions(body.value, options);
}

}  // namespace muster::apiserver
