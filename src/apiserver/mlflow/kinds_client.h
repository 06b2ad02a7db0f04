// src/apiserver/mlflow/kinds_client.h
//
// KindsClient: how the MLflow surface reads and writes the kinds of the registry: as requests of
// the caller to this same server, so that its permissions, admission, quotas and validation hold.
//
// Life cycle: one per request; shared by the callbacks of its steps.
// Thread:     the loop thread. `done` may run inside the call.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/call.h"
#include "apiserver/core.h"
#include "apiserver/mlflow/scan_turns.h"
#include "base/status.h"
#include "base/task.h"
#include "json/value.h"

namespace muster::apiserver {

// Objects that one search reads; where there are more it says so.
inline constexpr size_t kMaxRegistryScan = 5000;
// Objects of one read of a search, and bytes of one read, and of all.
inline constexpr size_t kMaxRegistryPage = 100;
inline constexpr size_t kMaxRegistryPageBytes = 8 * 1024 * 1024;
inline constexpr size_t kMaxRegistryScanBytes = 32 * 1024 * 1024;
// Times that a change starts again because another came between, ...
inline constexpr int kMaxRegistryTries = 30;

// Answers a request of `user` as one of its own.
using SubmitInside = std::function<void(net::Request, const User&, net::ResponseWriterPtr)>;

class KindsClient : public std::enable_shared_from_this<KindsClient> {
 public:
  using Done = Function<void(Result<json::Value>)>;
  // The object as it should be; null: it stays as it is.
  using Change = std::function<Result<json::Value>(const json::Value& object)>;

  KindsClient(Core& core, SubmitInside submit, std::shared_ptr<ScanTurns> scans, User user,
              std::string ns)
      : core_(core),
        submit_(std::move(submit)),
        scans_(std::move(scans)),
        user_(std::move(user)),
        ns_(std::move(ns)) {}

  void Get(std::string_view plural, std::string_view name, Done done);
  // An array of all objects. `field_selector` may be "". Invalid beyond kMaxRegistryScan and
  // kMaxRegistryScanBytes: clients would ask again and again if it were TooManyRequests, as it is
  // when too many scans wait. The first one waits for a slot, which is kept.
  void List(std::string_view plural, const std::string& field_selector, Done done);
  // What was read is small, or gone: others may scan.
  void EndScan() {
    slot_ = nullptr;
    has_slot_ = false;
  }
  void Create(std::string_view plural, json::Value object, Done done);
  // Reads, changes and writes, again if another write came between. `done` gets the new state.
  void Update(std::string_view plural, std::string_view name, Change change, Done done);
  void Delete(std::string_view plural, std::string_view name, Done done);
  void DeleteAll(std::string_view plural, const std::string& field_selector, Done done);
  // Ok if the caller may list these.
  void CheckMayList(std::string_view plural, Done done);
  // Ok if the caller may delete this one.
  Status CheckMayDelete(std::string_view plural, std::string_view name) const;

  // `work` on the pool, if there is one, then `done` on the loop.
  void Away(std::function<Result<std::string>()> work,
            std::function<void(Result<std::string>)> done);

  const std::string& ns() const { return ns_; }
  const User& user() const { return user_; }
  Time now() const { return core_.loop.Now(); }
  std::string NewRunId();

 private:
  // `bytes`, if any, becomes the size of the answer.
  void Send(std::string method, std::string target, json::Value body, Done done,
            std::shared_ptr<size_t> bytes = nullptr);
  std::string PathOf(std::string_view plural, std::string_view name) const;
  // What a LIST has read.
  struct Scanned {
    json::Value objects = json::List();
    size_t bytes = 0;
  };
  void ListOn(std::string base, std::string token, Scanned so_far, Done done);
  void TryUpdate(std::string plural, std::string name, Change change, int tries, Done done);

  Core& core_;
  const SubmitInside submit_;
  const std::shared_ptr<ScanTurns> scans_;
  ScanTurns::Slot slot_;
  bool has_slot_ = false;  // a slot points to nothing
  const User user_;
  const std::string ns_;
};
using KindsClientPtr = std::shared_ptr<KindsClient>;

inline constexpr const char* kRegistryGroupVersion = "registry.muster.dev/v1alpha1";

}  // namespace muster::apiserver
