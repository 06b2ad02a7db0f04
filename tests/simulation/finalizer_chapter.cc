#include "simulation/finalizer_chapter.h"

#include <string_view>
#include <utility>

#include "base/strings.h"
#include "schema/conditions.h"
#include "simulation/fake_node.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr char kNamespace[] = "held";
constexpr char kConfigMaps[] = "/registry/core/configmaps/default/family-";
constexpr char kNamespaceKey[] = "/registry/core/namespaces/held";
constexpr char kOwnerKey[] = "/registry/core/configmaps/default/family-owner";
constexpr char kHold[] = "simulation/hold";
constexpr std::string_view kHeldNames[] = {"first", "second"};
// Whoever has to be told of what waits has been told by then.
constexpr Duration kUntilToldOf = seconds(60);

json::Value WithoutHold(const json::Value& object) {
  json::Array kept;
  for (const json::Value& finalizer : object["metadata"]["finalizers"].items()) {
    if (finalizer.AsString() != kHold) kept.push_back(finalizer);
  }
  return object.SetPath({"metadata", "finalizers"}, json::Value(std::move(kept)));
}

json::Value ConfigMap(std::string_view ns, const std::string& name, const std::string& metadata) {
  return Yaml(
      fmt::format("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}, namespace: {}, {}}}",
                  name, ns, metadata));
}

std::string Held() { return fmt::format("finalizers: [{}]", kHold); }

}  // namespace

FinalizerChapter::FinalizerChapter(const Tale& tale) : Chapter(tale) {
  world_.oracles().Listen(kConfigMaps, [this](const std::string&, const json::Value& object,
                                              bool deleted) { OnConfigMap(object, deleted); });
}

void FinalizerChapter::Plan() {
  CreateUntilTaken(
      world_, resources::kNamespaces,
      Yaml(fmt::format("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}", kNamespace)));
  world_.At(trouble_.UpTo(20'000) + seconds(2), [this] { MakeHeld(); });
  world_.At(trouble_.UpTo(20'000), [this] { MakeFamily(); });
  world_.At(seconds(rng_.Between(25, 80)), [this] { DeleteAll(); });
  early_ = rng_.Chance(0.3);
  if (early_) world_.At(seconds(rng_.Between(90, 115)), [this] { Release(); });
}

// In a namespace, beside pods and what nobody holds.
void FinalizerChapter::MakeHeld() {
  Tell("hold an object", kNamespace);
  for (const std::string_view name : kHeldNames)
    CreateUntilTaken(world_, resources::kConfigMaps,
                     ConfigMap(kNamespace, std::string(name), Held()));
  CreateUntilTaken(world_, resources::kConfigMaps, ConfigMap(kNamespace, "free", "labels: {a: b}"));
  CreateUntilTaken(world_, resources::kPods,
                   Yaml(fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: free, namespace: {}, annotations: {{{}: "{}"}}}}
spec: {{containers: [{{name: main, image: v1}}]}}
)",
                                    kNamespace, kRunsForAnnotation, kForEverMs)));
}

void FinalizerChapter::MakeFamily() {
  CreateUntilTaken(world_, resources::kConfigMaps,
                   ConfigMap("default", "family-owner", "labels: {a: b}"));
  world_.At(seconds(1), [this] {
    EditUntilTaken(world_, {resources::kConfigMaps, "default", "family-owner", ""},
                   [this](const json::Value& owner) {
                     MakeDependent(owner["metadata"]["uid"].Str());
                     return json::Value();
                   });
  });
}

void FinalizerChapter::MakeDependent(const std::string& owner_uid) {
  Tell("hold a dependent", "family-child");
  const std::string owner = fmt::format(
      "{}, ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: family-owner, uid: {}, "
      "blockOwnerDeletion: true}}]",
      Held(), owner_uid);
  CreateUntilTaken(world_, resources::kConfigMaps, ConfigMap("default", "family-child", owner));
}

// As a user who tries until it is done.
void FinalizerChapter::DeleteAll() {
  client::DeleteOptions foreground;
  foreground.propagation_policy = "Foreground";
  Delete({resources::kConfigMaps, "default", "family-owner", ""}, foreground);
  Delete({resources::kNamespaces, "", kNamespace, ""});
}

void FinalizerChapter::End() {
  DeleteAll();
  if (released_) return Release();  // what was made too late for it
  world_.At(kUntilToldOf, [this] {
    CheckWaiting();
    Release();
  });
}

// Both are still there, and the namespace says why.
void FinalizerChapter::CheckWaiting() {
  const json::Value owner = world_.Find(kOwnerKey);
  if (!dependents_.empty() && !IsGoing(owner))
    world_.Violation("an owner does not wait for its dependent");
  if (!dependents_.empty()) counts_.Add("branch: an owner waits for a finalizer");
  const json::Value ns = world_.Find(kNamespaceKey);
  size_t held = 0;
  for (const std::string_view name : kHeldNames)
    held += !world_.Find(fmt::format("/registry/core/configmaps/{}/{}", kNamespace, name)).IsNull();
  if (held == 0) return;
  if (!IsGoing(ns)) return world_.Violation("a namespace does not wait for its content");
  counts_.Add("branch: a namespace waits for a finalizer");
  const auto says = [&](std::string_view type, const std::string& text) {
    const json::Value& condition = schema::FindCondition(ns["status"]["conditions"], type);
    const std::string_view message = condition["message"].AsString();
    if (condition["status"].AsString() == "True" && message.find(text) != message.npos) return;
    world_.Violation(fmt::format("namespace {} waits; {} says: {}", kNamespace, type, message));
  };
  says("NamespaceContentRemaining", fmt::format("configmaps. has {} resource instances", held));
  says("NamespaceFinalizersRemaining", fmt::format("{} in {} resource instances", kHold, held));
}

void FinalizerChapter::Release() {
  released_ = true;
  Tell("take a finalizer off", "");
  for (const std::string_view name : kHeldNames)
    EditUntilTaken(world_, {resources::kConfigMaps, kNamespace, std::string(name), ""},
                   WithoutHold);
  EditUntilTaken(world_, {resources::kConfigMaps, "default", "family-child", ""}, WithoutHold);
}

std::vector<std::string> FinalizerChapter::Restless() const {
  std::vector<std::string> restless;
  if (!released_) restless.push_back("finalizers");
  if (!world_.Find(kNamespaceKey).IsNull()) restless.push_back("namespace held");
  if (!dependents_.empty()) restless.push_back("a dependent");
  if (!world_.Find(kOwnerKey).IsNull()) restless.push_back("an owner");
  return restless;
}

void FinalizerChapter::OnConfigMap(const json::Value& object, bool deleted) {
  const std::string name = object["metadata"]["name"].Str();
  if (name != "family-owner") {
    deleted ? (void)dependents_.erase(name) : (void)dependents_.insert(name);
  } else if (deleted && !dependents_.empty()) {
    world_.Violation("an owner went in the foreground before its dependent");
  }
}

void FinalizerChapter::Judge() { counts_.Add("oracle: all that was held is gone"); }

}  // namespace muster::simulation
