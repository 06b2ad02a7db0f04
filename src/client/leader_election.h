// src/client/leader_election.h
//
// LeaderElector: of several copies of a part one leads, by a Lease that the leader keeps renewing;
// the rules and times of client-go (tools/leaderelection), so that copies of different programs
// agree on one Lease.
//
// The others' times are never compared with our clock: a Lease counts as held until its text has
// not changed for as long as it says, measured here.
//
// Life cycle: construct, Start() once, Release() before a stop in good order; destroying it
//             abandons the Lease, which then runs out.
// Thread:     the loop thread. Callbacks run there.
// Invariants: on_started at most once, on_lost at most once after it. A leader that could not renew
//             for kRenewDeadline loses before anybody else can lead (kLeaseDuration).

#pragma once

#include <functional>
#include <string>

#include "base/rng.h"
#include "base/task.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/lifetime.h"
#include "json/value.h"

namespace muster::client {

inline constexpr Duration kLeaseDuration = seconds(15);
inline constexpr Duration kRenewDeadline = seconds(10);
inline constexpr Duration kLeaseRetryPeriod = seconds(2);  // plus up to a fifth, by chance

struct LeaderElectionOptions {
  std::string ns = "kube-system";
  std::string name;      // of the Lease
  std::string identity;  // unlike all others', "host_uuid"
};

struct LeaderCallbacks {
  std::function<void()> on_started;
  std::function<void()> on_lost;  // the process should end
  // Somebody else leads: once for each holder.
  std::function<void(const std::string& identity)> on_other;
};

class LeaderElector {
 public:
  LeaderElector(ApiClient& api, LeaderElectionOptions options, LeaderCallbacks callbacks, Rng rng);
  void Start() { Look(); }
  bool leads() const { return leads_; }
  // Gives the Lease up, so that another may lead at once; `done` runs in any case.
  void Release(Task done);

 private:
  void Look();
  void Read();
  void OnLease(Result<json::Value> lease);
  void Create();
  void TakeOver();
  void OnWritten(const Result<json::Value>& answer);
  void Observe(const json::Value& lease);
  void Again(const Status& failure);
  void Lose();
  json::Value WithSpec(json::Value spec) const;
  json::Value Spec(int64_t transitions, const json::Value& acquired) const;

  ApiClient& api_;
  const LeaderElectionOptions options_;
  const LeaderCallbacks callbacks_;
  Rng rng_;
  const Target target_;
  json::Value observed_;  // the Lease's spec as it was last seen to change
  std::string version_;   // its resourceVersion
  Time observed_at_{};    // on our clock
  Time renewed_at_{};     // before the request that renewed it last
  Time asked_at_{};
  std::string told_of_;
  bool leads_ = false;
  bool over_ = false;  // lost or released
  Lifetime lifetime_;
};

}  // namespace muster::client
