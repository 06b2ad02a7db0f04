// src/agent/kubelet_server/log_reader.h
//
// LogReader: a container's CRI log as the plain text that `kubectl logs` shows, rotated files
// included.
//
// Life cycle: Open() positions it by tail and since; Read() gives what is there and may be called
// again later for what
//             came since (follow).
// Thread:     one at a time (the pool).
// Invariants: a line is given once and whole; text is never more than the limit.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/runtime/unique_fd.h"
#include "base/status.h"
#include "base/time.h"

namespace muster::agent {

inline constexpr size_t kLogChunkBytes = 256 * 1024;

struct LogOptions {
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<int64_t> tail_lines;
  std::optional<int64_t> limit_bytes;
  std::optional<Time> since;
};

// The number of a container's latest run with a log in DIR: 3 if that is "3.log". nullopt: none.
std::optional<int> LatestLogAttempt(const std::string& container_log_dir);

class LogReader {
 public:
  static Result<LogReader> Open(const std::string& path, const LogOptions& options);

  // Appends up to about kLogChunkBytes of text. False at the end of what is there now.
  Result<bool> Read(std::string& out);
  bool LimitReached() const { return left_ && *left_ <= 0; }

 private:
  LogReader(std::string path, const LogOptions& options);
  Status OpenFile(const std::string& path);
  Status OpenTail(const std::vector<std::string>& files, int64_t lines);
  bool HasNextFile() const;
  bool NextFile();
  void Convert(std::string_view line, std::string& out);

  std::string path_;
  bool timestamps_;
  std::optional<Time> since_;
  std::optional<int64_t> left_;
  std::string file_;
  UniqueFd fd_;
  bool final_ = false;    // nothing more is written to the file that we hold
  std::string carry_;     // an incomplete last line
  bool in_line_ = false;  // the last piece given was tagged P
};

}  // namespace muster::agent
