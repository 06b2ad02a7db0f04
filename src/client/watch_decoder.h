// src/client/watch_decoder.h
//
// WatchDecoder: the bytes of a watch answer -> its events. A chunk may end anywhere, even inside a
// UTF-8 sequence.
//
// Thread:     the loop thread.
// Errors:     a frame over kMaxWatchFrameBytes, or one that is not {"type","object"}.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace muster::client {

// One event of one object: bodies are at most 3 MiB, a stored object may grow by defaults and
// status.
inline constexpr size_t kMaxWatchFrameBytes = 16 << 20;

struct WatchFrame {
  std::string type;  // "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
  json::Value object;
};

class WatchDecoder {
 public:
  void Feed(std::string_view bytes);
  // The next whole frame; nullopt when more bytes are needed. After an error nothing more comes.
  Result<std::optional<WatchFrame>> Next();

 private:
  std::string buffer_;
  size_t start_ = 0;    // of the first byte that no frame has taken
  size_t scanned_ = 0;  // no line end in [start_, scanned_)
};

}  // namespace muster::client
