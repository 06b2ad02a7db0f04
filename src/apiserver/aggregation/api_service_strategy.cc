#include "apiserver/aggregation/api_service_strategy.h"

#include <algorithm>

#include "apiserver/aggregation/api_service.h"
#include "apiserver/errors.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

// Objects of these are stored here: nobody else could serve them. Groups of
// CustomResourceDefinitions and what is computed (metrics.k8s.io) may be taken over.
bool IsIndispensable(std::string_view group, std::string_view version) {
  const auto& kinds = schema::Registry::BuiltIn().kinds();
  return std::ranges::any_of(kinds, [&](const schema::KindPtr& kind) {
    return kind->group == group && kind->version == version && !kind->computed;
  });
}

// A change of what stands behind it leaves nothing of what was known.
void SetFirstCondition(const WriteContext& context, json::Value& object) {
  if (ReadApiService(object) != nullptr) {
    object = object.Remove("status");
    return;
  }
  const json::Value condition = json::Obj({{"type", kAvailable},
                                           {"status", "True"},
                                           {"lastTransitionTime", FormatTime(context.now)},
                                           {"reason", "Local"},
                                           {"message", "Local APIServices are always available"}});
  object = object.SetPath({"status", "conditions"}, json::List({condition}));
}

}  // namespace

Status ApiServiceStrategy::PrepareCreate(WriteContext& context, json::Value& object) {
  SetFirstCondition(context, object);
  return Status::Ok();
}

Status ApiServiceStrategy::PrepareUpdate(WriteContext& context, const json::Value& before,
                                         json::Value& after) {
  if (before["spec"]["service"].IsNull() != after["spec"]["service"].IsNull())
    SetFirstCondition(context, after);
  return Status::Ok();
}

void ApiServiceStrategy::Validate(const WriteContext&, const json::Value*, const json::Value& after,
                                  std::vector<StatusCause>& causes) {
  const ApiServicePtr service = ReadApiService(after);
  if (service == nullptr || !IsIndispensable(service->group, service->version)) return;
  causes.push_back(ForbiddenField(
      "spec.service",
      fmt::format("{} is served by this server itself, which needs it; leave spec.service out, or "
                  "name a group or version of your own",
                  service->group.empty() ? service->version : service->GroupVersion())));
}

}  // namespace muster::apiserver
