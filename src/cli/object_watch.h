// src/cli/object_watch.h
//
// ObjectWatch: the objects of one namespace that match a selector, kept current. It survives a
// server that goes away and comes back: it lists again and tells the difference.
//
// Life cycle: begins in the constructor, ends with the destructor; no callback runs afterwards.
// Thread:     the loop thread.
// Invariants: every change is told once, in order; an object that is gone is told as null.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "cli/session.h"
#include "client/api_client.h"
#include "client/lifetime.h"
#include "json/value.h"

namespace muster::cli {

inline constexpr Duration kWatchRetryDelay = milliseconds(300);

class ObjectWatch {
 public:
  struct Selection {
    client::Resource resource;
    std::string ns, label_selector, field_selector;
  };
  using OnChange = std::function<void(const std::string& name, const json::Value& object)>;

  ObjectWatch(Session& session, Selection selection, OnChange on_change);

  // Runs when the first list is there, and again after each further one.
  void OnSync(std::function<void()> on_sync) { on_sync_ = std::move(on_sync); }
  // Each failure to list. What to do is the owner's decision; the watch tries again by itself.
  void OnError(std::function<void(const Status&)> on_error) { on_error_ = std::move(on_error); }

  bool synced() const { return synced_; }
  const std::map<std::string, json::Value>& objects() const { return objects_; }
  const json::Value& Find(const std::string& name) const;  // null if absent

 private:
  void List();
  void OnList(Result<json::Value> answer);
  void Watch(const std::string& version);
  void Put(const json::Value& object);
  void Remove(const std::string& name);
  void Retry();

  Session& session_;
  const Selection selection_;
  OnChange on_change_;
  std::function<void()> on_sync_;
  std::function<void(const Status&)> on_error_;
  bool synced_ = false;
  std::map<std::string, json::Value> objects_;
  std::unique_ptr<client::StreamHandle> watch_;
  client::Lifetime lifetime_;
};

}  // namespace muster::cli
