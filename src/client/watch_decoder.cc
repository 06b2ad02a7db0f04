#include "client/watch_decoder.h"

#include <utility>

#include "json/parse.h"

namespace muster::client {

void WatchDecoder::Feed(std::string_view bytes) {
  if (start_ > 0 && start_ == buffer_.size()) {
    buffer_.clear();
    scanned_ = start_ = 0;
  } else if (start_ > buffer_.size() / 2) {
    buffer_.erase(0, start_);
    scanned_ -= start_;
    start_ = 0;
  }
  buffer_ += bytes;
}

Result<std::optional<WatchFrame>> WatchDecoder::Next() {
  while (true) {
    const size_t end = buffer_.find('\n', scanned_);
    if (end == std::string::npos) {
      scanned_ = buffer_.size();
      if (scanned_ - start_ > kMaxWatchFrameBytes) {
        return Error(Reason::kRequestEntityTooLarge,
                     "a watch event of the server is larger than {} bytes", kMaxWatchFrameBytes);
      }
      return std::optional<WatchFrame>();
    }
    const std::string_view line(buffer_.data() + start_, end - start_);
    scanned_ = end + 1;
    if (line.empty() || line == "\r") {
      start_ = scanned_;
      continue;
    }
    Result<json::Value> parsed = json::Parse(line, nullptr, json::kMaxAnswerDepth);
    start_ = scanned_;
    if (!parsed) return Error(parsed.error().WithPrefix("a watch event of the server is broken: "));
    WatchFrame frame{parsed->operator[]("type").Str(), (*parsed)["object"]};
    if (frame.type.empty() || !frame.object.IsObject()) {
      return Error(Reason::kInternalError,
                   "a watch event of the server lacks its type or its object");
    }
    return std::optional<WatchFrame>(std::move(frame));
  }
}

}  // namespace muster::client
