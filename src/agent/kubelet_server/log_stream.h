// src/agent/kubelet_server/log_stream.h
//
// Sends a container's log to a ResponseWriter, and with `follow` what comes later, until the
// container has ended or the peer is gone. Reading happens on the pool.
//
// Life cycle: StartLogStream() and forget: it keeps itself alive until it ended.
// Thread:     the loop thread.

#pragma once

#include <functional>
#include <string>

#include "agent/kubelet_server/log_reader.h"
#include "loop/asio_loop.h"
#include "loop/loop.h"
#include "net/http.h"

namespace muster::agent {

inline constexpr size_t kMaxLogBacklogBytes =
    1024 * 1024;  // in the writer, before we wait for the reader
inline constexpr Duration kLogPollPeriod =
    milliseconds(100);  // looks whether the container has ended

struct LogStreamRequest {
  std::string path;
  LogOptions options;
  std::function<bool()> still_running;  // more may come
};

void StartLogStream(AsioLoop& loop, Pool& pool, LogStreamRequest request,
                    net::ResponseWriterPtr writer);

}  // namespace muster::agent
