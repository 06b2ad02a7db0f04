// src/apiserver/aggregation/api_service_index.h
//
// ApiServiceIndex: the APIServices in the store whose requests go to a Service, by group and
// version.
//
// Life cycle: a member of the Aggregator; Start() loads, then it follows the store.
// Thread:     the loop thread.
// Invariants: equals the committed state: an APIService counts when its write is answered.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/aggregation/api_service.h"
#include "store/store.h"

namespace muster::apiserver {

class ApiServiceIndex {
 public:
  // Of an APIService that appeared or whose spec changed; nullptr as second: it is gone.
  using OnChange = std::function<void(const std::string& name, const ApiServicePtr& service)>;
  // Of any APIService that was deleted.
  using OnDeleted = std::function<void(const std::string& name)>;

  // REQUIRES: `store` outlives it.
  ApiServiceIndex(store::Store& store, OnChange on_change, OnDeleted on_deleted)
      : store_(store), on_change_(std::move(on_change)), on_deleted_(std::move(on_deleted)) {}
  ~ApiServiceIndex() {
    if (watch_ != 0) store_.CancelWatch(watch_);
  }
  ApiServiceIndex(const ApiServiceIndex&) = delete;
  ApiServiceIndex& operator=(const ApiServiceIndex&) = delete;
  void Start();

  // nullptr: this server answers itself.
  ApiServicePtr Find(std::string_view group, std::string_view version) const;
  ApiServicePtr FindName(std::string_view name) const;
  const std::map<std::string, ApiServicePtr, std::less<>>& all() const { return by_name_; }
  bool empty() const { return by_name_.empty(); }
  // Grows with every change.
  uint64_t revision() const { return revision_; }

 private:
  void Put(const store::Entry& entry);
  void Remove(const std::string& name);

  store::Store& store_;
  OnChange on_change_;
  OnDeleted on_deleted_;
  store::Store::WatchId watch_ = 0;
  std::map<std::string, ApiServicePtr, std::less<>> by_name_;  // VERSION.GROUP
  uint64_t revision_ = 0;
};

}  // namespace muster::apiserver
