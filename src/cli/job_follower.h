// src/cli/job_follower.h
//
// JobFollower: watches a job and its pods, prints their logs, shows on the status line what it
// waits for (without a terminal, in a line each), and says when it is over and everything was read.
//
// Life cycle: begins in the constructor; destroy to stop.
// Thread:     the loop thread.

#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "cli/console.h"
#include "cli/log_follower.h"
#include "cli/object_watch.h"
#include "cli/resource_finder.h"
#include "cli/session.h"

namespace muster::cli {

inline constexpr const char* kJobNameLabel = "training.kubeflow.org/job-name";
// After the job's end: for the last words, and for pods that go on although their job is over.
inline constexpr Duration kLastWordsDelay = milliseconds(200);
inline constexpr Duration kLastWordsLimit = seconds(5);
// Without a terminal: what pods wait for is told once each, and not for ever.
inline constexpr size_t kMaxToldReasons = 20;

class JobFollower {
 public:
  // `job` exists. `on_over`: the job is finished and its logs are read, or it was deleted (then the
  // job is null).
  JobFollower(Session& session, Console& console, const ApiResource& resource,
              const json::Value& job, LogOptions options,
              std::function<void(const json::Value& job)> on_over);

  const std::map<std::string, json::Value>& pods() const { return pods_.objects(); }
  const json::Value& job() const { return job_; }

 private:
  void OnJob(const json::Value& job);
  void OnPod(const json::Value& pod);
  void ShowProgress();
  void TellWaiting();
  void LookForEnd();
  bool PodsSettled() const;

  Session& session_;
  Console& console_;
  const std::string name_;
  std::function<void(const json::Value&)> on_over_;
  json::Value job_;
  bool finished_ = false;
  bool told_ = false;
  Time finished_at_{};
  std::set<std::string> told_reasons_;
  LogFollower logs_;
  ObjectWatch jobs_;
  ObjectWatch pods_;
  client::Lifetime lifetime_;
};

// How many pods the job wants: several make prefixes useful.
int64_t ReplicasOf(const json::Value& job);
// The selector of a job's pods.
std::string PodSelectorOf(const ApiResource& resource, const json::Value& job);

}  // namespace muster::cli
