// src/agent/kubelet_server/exec_session.h
//
// One `kubectl exec`: a command in a container, its streams over a WebSocket with the channels of
// v5.channel.k8s.io (and v4): 0 stdin, 1 stdout, 2 stderr, 3 how it ended, 4 terminal size, 255 end
// of a stream (v5).
//
// Life cycle: StartExecSession() and forget: it keeps itself alive until command or peer are gone.
// Thread:     the loop thread.
// Invariants: a slow peer slows the command, and a command that does not read slows the peer: with
//             kMaxExecBacklogBytes waiting in one direction no more is read there, but for what its
//             stream had on the way. So a peer that goes away meanwhile is noticed afterwards.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/runtime/pod_runtime.h"
#include "loop/asio_loop.h"
#include "net/http.h"

namespace muster::agent {

inline constexpr size_t kMaxExecBacklogBytes = 1024 * 1024;
// Of the command's standard input, where the kernel allows it: what we can write between two tries.
inline constexpr int kExecPipeBytes = 1024 * 1024;
inline constexpr Duration kExecRetryDelay = milliseconds(5);
// After the command has ended its streams may be held open by its children; they are given so long.
inline constexpr Duration kExecDrainTime = milliseconds(200);

// client-go reads from a new connection before it knows the streams, and throws away what comes for
// them until then. So the command starts when the peer has answered a ping and this time has
// passed, when the peer has said something itself, or when a peer that does not answer pings had
// the longer time.
inline constexpr Duration kExecStreamsDelay = milliseconds(5);
inline constexpr Duration kExecPongTime = milliseconds(100);

struct ExecRequest {
  std::string pod_uid, container;
  std::vector<std::string> command;
  bool tty = false, in = false, out = false, err = false;
};

// Answers the request: 101 and the session, or an error. `runtime` must outlive the session or be
// gone with the loop.
void StartExecSession(AsioLoop& loop, PodRuntime& runtime, ExecRequest exec,
                      const net::Request& request, net::ResponseWriterPtr writer);

// The v1 Status that channel 3 carries: Success, or Failure with cause ExitCode.
std::string ExecStatus(int exit_code);

}  // namespace muster::agent
