#include "apiserver/aggregation/api_service_index.h"

#include <fmt/core.h>

#include "apiserver/stored_object.h"
#include "base/log.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

const schema::Kind& ApiServices() {
  return *schema::Registry::BuiltIn().Find("apiregistration.k8s.io", "v1", "apiservices");
}

}  // namespace

void ApiServiceIndex::Start() {
  const std::string prefix = KeyPrefix(ApiServices());
  const Result<store::RangeResult> range = store_.Range(prefix, "", 0, 0);
  if (!range)
    return LOG_ERROR("apiserver: cannot read API services error={:?}", range.error().message());
  for (const store::EntryPtr& entry : range->entries) Put(*entry);
  const auto watch =
      store_.Watch(prefix, range->revision, [this](const std::vector<store::WatchEvent>& events) {
        for (const store::WatchEvent& event : events) {
          if (event.type == store::WatchEvent::Type::kPut) {
            Put(*event.entry);
          } else {
            const std::string name(ParseKey(event.entry->key).name);
            Remove(name);
            on_deleted_(name);
          }
        }
      });
  if (watch) watch_ = *watch;
}

void ApiServiceIndex::Put(const store::Entry& entry) {
  const ApiServicePtr service = ReadApiService(DecodeStored(ApiServices(), *entry.value));
  const std::string name(ParseKey(entry.key).name);
  if (service == nullptr) return Remove(name);
  const ApiServicePtr before = std::exchange(by_name_[name], service);
  ++revision_;
  if (before == nullptr || !before->SameSpec(*service)) on_change_(name, service);
}

void ApiServiceIndex::Remove(const std::string& name) {
  if (by_name_.erase(name) == 0) return;
  ++revision_;
  on_change_(name, nullptr);
}

ApiServicePtr ApiServiceIndex::FindName(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

ApiServicePtr ApiServiceIndex::Find(std::string_view group, std::string_view version) const {
  if (by_name_.empty()) return nullptr;
  ApiServicePtr found = FindName(fmt::format("{}.{}", version, group));
  // "v1.a" of group "b" is not "v1" of group "a.b".
  return found != nullptr && found->group == group ? found : nullptr;
}

}  // namespace muster::apiserver
