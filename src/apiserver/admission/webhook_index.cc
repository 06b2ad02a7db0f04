#include "apiserver/admission/webhook_index.h"

#include "apiserver/stored_object.h"
#include "base/log.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

}  // namespace

WebhookIndex::WebhookIndex(store::Store& store) : store_(store) {}

WebhookIndex::~WebhookIndex() {
  for (const store::Store::WatchId watch : watches_) store_.CancelWatch(watch);
}

void WebhookIndex::Start() {
  const schema::Registry& registry = schema::Registry::BuiltIn();
  Follow(registry.Find(kGroup, "v1", "mutatingwebhookconfigurations"), mutating_);
  Follow(registry.Find(kGroup, "v1", "validatingwebhookconfigurations"), validating_);
}

void WebhookIndex::Set::Flatten() {
  all.clear();
  for (const auto& [name, webhooks] : by_configuration)
    all.insert(all.end(), webhooks.begin(), webhooks.end());
}

void WebhookIndex::Follow(const schema::KindPtr& kind, Set& set) {
  const std::string prefix = KeyPrefix(*kind);
  const Result<store::RangeResult> range = store_.Range(prefix, "", 0, 0);
  if (!range)
    return LOG_ERROR("apiserver: cannot read webhooks error={:?}", range.error().message());
  const auto read = [kind, &set](const store::Entry& entry) {
    set.by_configuration[std::string(ParseKey(entry.key).name)] =
        ReadWebhooks(DecodeStored(*kind, *entry.value));
  };
  for (const store::EntryPtr& entry : range->entries) read(*entry);
  set.Flatten();
  const auto watch = store_.Watch(
      prefix, range->revision, [read, &set](const std::vector<store::WatchEvent>& events) {
        for (const store::WatchEvent& event : events) {
          if (event.type == store::WatchEvent::Type::kPut) {
            read(*event.entry);
          } else {
            set.by_configuration.erase(std::string(ParseKey(event.entry->key).name));
          }
        }
        set.Flatten();
      });
  if (watch) watches_.push_back(*watch);
}

}  // namespace muster::apiserver
