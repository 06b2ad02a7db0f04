#include "simulator/object_validation.h"

#include <string>
#include <utility>

#include <fmt/core.h>

#include "schema/conform.h"
#include "schema/defaulting.h"
#include "schema/registry.h"
#include "schema/validation.h"

namespace muster::simulator {
namespace {

schema::KindPtr KindOf(const json::Value& object) {
  const std::string_view version = object["apiVersion"].AsString();
  const size_t slash = version.find('/');
  const bool is_core = slash == std::string_view::npos;
  return schema::Registry::BuiltIn().FindKind(is_core ? "" : version.substr(0, slash),
                                              is_core ? version : version.substr(slash + 1),
                                              object["kind"].AsString());
}

// A Job's selector and the labels that it means are the server's to fill in.
bool IsFilledIn(const schema::Kind& kind, const StatusCause& cause) {
  return kind.group == "batch" && (cause.field.find("selector") != std::string::npos ||
                                   cause.message.find("`selector`") != std::string::npos);
}

Status ValidateObject(const json::Value& object) {
  const schema::KindPtr kind = KindOf(object);
  if (kind == nullptr) return Status::Ok();
  std::vector<std::string> unknown;
  ASSIGN_OR_RETURN(json::Value conforming, schema::Conform(*kind, object, &unknown));
  RETURN_IF_ERROR(schema::StrictDecodingError(*kind, unknown, {}));
  const json::Value& metadata = conforming["metadata"];
  const std::string name = metadata["name"].Str(metadata["generateName"].Str());
  if (kind->namespaced && metadata["namespace"].IsNull())
    conforming = conforming.SetPath({"metadata", "namespace"}, "default");
  conforming = schema::ApplyDefaults(*kind, std::move(conforming));
  std::vector<StatusCause> causes = schema::Validate(*kind, conforming);
  std::erase_if(causes, [&](const StatusCause& cause) { return IsFilledIn(*kind, cause); });
  if (causes.empty()) return Status::Ok();
  return schema::InvalidError(*kind, name, std::move(causes));
}

}  // namespace

Status ValidateObjects(std::string_view file, const std::vector<json::Value>& objects) {
  for (const json::Value& object : objects) {
    if (const Status status = ValidateObject(object); !status.ok()) {
      const json::Value& metadata = object["metadata"];
      return status.WithPrefix(
          fmt::format("{}: {} {}: ", file, object["kind"].AsString(), metadata["name"].AsString()));
    }
  }
  return Status::Ok();
}

}  // namespace muster::simulator
