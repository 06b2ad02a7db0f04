// src/agent/probes/handler_runner.h
//
// HandlerRunner: does what probes and hooks ask for. NodeHandlerRunner does it for real; a fake in
// tests.
//
// Life cycle: one per agent. Destroying a HandlerRun ends it: a command is killed, a connection
//             closed, and its callback does not run any more.
// Thread:     the loop thread; callbacks run there, never from inside Run().

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/probes/handler_action.h"
#include "base/task.h"
#include "base/time.h"

namespace muster::agent {

// What is kept of the output of a command or of an answer, as upstream.
inline constexpr size_t kMaxProbeOutputBytes = 10 * 1024;

struct HandlerResult {
  // kUnknown: nobody can say, as it could not be tried. kWarning is a success worth an event.
  enum class Is : uint8_t { kSuccess, kWarning, kFailure, kUnknown };

  Is is = Is::kUnknown;
  std::string output;  // or why

  bool Good() const { return is == Is::kSuccess || is == Is::kWarning; }
};

struct HandlerTarget {
  std::string uid, container;  // where commands run
};

class HandlerRun {
 public:
  virtual ~HandlerRun() = default;
};

class HandlerRunner {
 public:
  using Done = Function<void(HandlerResult)>;

  virtual ~HandlerRunner() = default;
  // A failure after `timeout`; without one it runs until it ends or is destroyed.
  virtual std::unique_ptr<HandlerRun> Run(const HandlerTarget& target, const HandlerAction& action,
                                          std::optional<Duration> timeout, Done done) = 0;
};

}  // namespace muster::agent
