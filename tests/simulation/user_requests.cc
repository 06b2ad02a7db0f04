#include "simulation/user_requests.h"

#include <utility>

#include "base/check.h"
#include "json/parse.h"
#include "simulation/world.h"

namespace muster::simulation {
namespace {

constexpr Duration kTryAgain = milliseconds(500);

}  // namespace

json::Value Yaml(const std::string& text) {
  const auto documents = json::ParseYaml(text);
  CHECK_MSG(documents.has_value(), text);
  return documents->at(0);
}

void CreateUntilTaken(World& world, const client::Resource& resource, const json::Value& object) {
  const client::ObjectKey key = client::KeyOf(object);
  world.user().Create(
      {resource, key.ns, key.name, ""}, object,
      [&world, resource, object](Result<json::Value> reply) {
        const Reason reason = reply ? Reason::kUnknown : reply.error().reason();
        if (reason == Reason::kInvalid || reason == Reason::kBadRequest)
          return world.Violation("refused: " + reply.error().ToString());
        if (reply || reason == Reason::kAlreadyExists || reason == Reason::kForbidden) return;
        world.At(kTryAgain,
                 [&world, resource, object] { CreateUntilTaken(world, resource, object); });
      });
}

void EditUntilTaken(World& world, const client::Target& target,
                    std::function<json::Value(json::Value)> change) {
  world.user().Get(target, [&world, target, change](Result<json::Value> reply) {
    if (!reply && reply.error().reason() == Reason::kNotFound) return;
    const auto again = [&world, target, change] {
      world.At(kTryAgain, [&world, target, change] { EditUntilTaken(world, target, change); });
    };
    if (!reply) return again();
    const json::Value wanted = change(*reply);
    if (wanted.IsNull()) return;
    world.user().Update(target, wanted, [&world, again](Result<json::Value> done) {
      if (done || done.error().reason() == Reason::kNotFound) return;
      if (done.error().reason() == Reason::kInvalid)
        return world.Violation("refused: " + done.error().ToString());
      again();
    });
  });
}

}  // namespace muster::simulation
