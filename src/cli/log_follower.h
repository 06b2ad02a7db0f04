// src/cli/log_follower.h
//
// LogFollower: prints what the containers of pods write, each line with the name of its pod in
// front if there are several. Survives restarts of a container, replaced pods and a server that
// goes away: a line is printed once.
//
// Life cycle: OnPod() for every state of every pod; destroy to stop.
// Thread:     the loop thread.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "cli/console.h"
#include "cli/session.h"
#include "client/lifetime.h"
#include "json/value.h"

namespace muster::cli {

inline constexpr size_t kMaxPartialLineBytes = 1024 * 1024;  // a longer line is printed in pieces
inline constexpr Duration kLogRetryDelay = milliseconds(300);

struct LogOptions {
  std::string container;  // "" = the pod's default one
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::string tail_lines, since_seconds, limit_bytes;  // as in the query; "" = all
  bool restarts = true;                                // go on with the next run of the container
  bool unconditional =
      false;  // ask even if the container has not started; the server says why there is no log
  bool prefix = false;
  std::string strip;  // "digits-": left out of the prefix
};

// The container whose log is meant when none is named: kubectl's annotation, else the first.
std::string DefaultContainer(const json::Value& pod);
// The path and query of one log request.
std::string LogPath(const json::Value& pod, const LogOptions& options,
                    const std::string& since_time);

class LogFollower {
 public:
  LogFollower(Session& session, Console& console, LogOptions options);
  ~LogFollower();

  // A pod as it is now; null objects are ignored (what was written before stays readable only with
  // the pod).
  void OnPod(const json::Value& pod);
  // Nothing is being read, and every pod seen that has written something was read to its end.
  bool Idle() const;
  // At least one run of this pod's container was read to its end.
  bool Finished(const std::string& pod_name) const;
  void OnIdle(std::function<void()> on_idle) { on_idle_ = std::move(on_idle); }
  // Something that the user must know, e.g. a log that cannot be read.
  void OnError(std::function<void(const Status&)> on_error) { on_error_ = std::move(on_error); }

 private:
  struct Reader;
  void Consider(Reader& reader);
  void Open(Reader& reader, const std::string& run);
  void OnEnd(Reader& reader, const Status& status);
  bool IsNew(Reader& reader, Time time, std::string_view text);
  void Print(Reader& reader, std::string_view line);

  Session& session_;
  Console& console_;
  const LogOptions options_;
  std::map<std::string, std::unique_ptr<Reader>> readers_;  // by pod name
  std::function<void()> on_idle_;
  std::function<void(const Status&)> on_error_;
  client::Lifetime lifetime_;
};

}  // namespace muster::cli
