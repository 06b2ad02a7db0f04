#include "cli/object_watch.h"

#include <utility>
#include <vector>

namespace muster::cli {

ObjectWatch::ObjectWatch(Session& session, Selection selection, OnChange on_change)
    : session_(session), selection_(std::move(selection)), on_change_(std::move(on_change)) {
  List();
}

const json::Value& ObjectWatch::Find(const std::string& name) const {
  static const json::Value kNull;
  const auto found = objects_.find(name);
  return found == objects_.end() ? kNull : found->second;
}

void ObjectWatch::List() {
  client::ListOptions options;
  options.label_selector = selection_.label_selector;
  options.field_selector = selection_.field_selector;
  session_.client().List(
      selection_.resource, selection_.ns, options,
      lifetime_.Guard([this](Result<json::Value> answer) { OnList(std::move(answer)); }));
}

void ObjectWatch::OnList(Result<json::Value> answer) {
  if (!answer) {
    if (on_error_) on_error_(answer.error());
    return Retry();
  }
  std::map<std::string, json::Value> before = objects_;
  for (const json::Value& item : (*answer)["items"].items()) {
    before.erase(item["metadata"]["name"].Str());
    Put(item);
  }
  for (const auto& [name, object] : before) Remove(name);
  synced_ = true;
  if (on_sync_) on_sync_();
  Watch((*answer)["metadata"]["resourceVersion"].Str());
}

void ObjectWatch::Watch(const std::string& version) {
  client::WatchOptions options;
  options.label_selector = selection_.label_selector;
  options.field_selector = selection_.field_selector;
  options.resource_version = version;
  client::WatchCallbacks callbacks;
  callbacks.on_event = lifetime_.Guard([this](std::string_view type, json::Value object) {
    if (type == "BOOKMARK") return;
    if (type == "DELETED") return Remove(object["metadata"]["name"].Str());
    Put(object);
  });
  // However it ended, a fresh list is always right.
  callbacks.on_end = lifetime_.Guard([this](const Status&) { Retry(); });
  watch_ =
      session_.client().Watch(selection_.resource, selection_.ns, options, std::move(callbacks));
}

void ObjectWatch::Put(const json::Value& object) {
  const std::string name = object["metadata"]["name"].Str();
  json::Value& known = objects_[name];
  if (known["metadata"]["resourceVersion"] == object["metadata"]["resourceVersion"] &&
      !known.IsNull())
    return;
  known = object;
  on_change_(name, object);
}

void ObjectWatch::Remove(const std::string& name) {
  if (objects_.erase(name) > 0) on_change_(name, json::Value());
}

void ObjectWatch::Retry() {
  session_.loop().After(kWatchRetryDelay, lifetime_.Guard([this] {
    watch_.reset();
    List();
  }));
}

}  // namespace muster::cli
