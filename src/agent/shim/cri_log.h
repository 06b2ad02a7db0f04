// src/agent/shim/cri_log.h
//
// CriLogWriter: a container's output as CRI log lines, `2026-01-02T03:04:05.000000006Z stdout F
// text`, with rotation. Pieces of lines longer than kMaxCriLineBytes are tagged P, the last piece
// F.
//
// Life cycle: one per container attempt; Open() appends to what is there; Finish() writes lines
// without a newline. Thread:     one owner (the shim). Invariants: the current file is PATH;
// rotated ones are PATH.<20 digits>, larger is younger; at most kMaxLogFiles in
//             all. Every line is written by one write(2), whole. A disk that is full loses lines,
//             never the container.
// Sources:    kubernetes/design-proposals kubelet-cri-logging; the kubelet's containerLogMaxSize
// and -MaxFiles.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/runtime/unique_fd.h"
#include "base/status.h"
#include "base/time.h"

namespace muster::agent {

inline constexpr size_t kMaxCriLineBytes = 16 * 1024;
inline constexpr size_t kMaxLogFileBytes = 10 * 1024 * 1024;
inline constexpr int kMaxLogFiles = 5;
// Of a log as a termination message, as upstream.
inline constexpr size_t kMaxMessageLogLines = 80;
inline constexpr size_t kMaxMessageLogBytes = 2048;

class CriLogWriter {
 public:
  enum class Stream : uint8_t { kStdout, kStderr };

  static Result<CriLogWriter> Open(const std::string& path, size_t max_bytes = kMaxLogFileBytes,
                                   int max_files = kMaxLogFiles);

  void Feed(Stream stream, std::string_view bytes, Time now);
  void Finish(Time now);

 private:
  CriLogWriter(std::string path, UniqueFd fd, size_t size, size_t max_bytes, int max_files);
  void Append(std::string& block, Stream stream, char tag, std::string_view text, Time now) const;
  void WriteBlock(std::string_view block);
  void Rotate();

  std::string path_;
  UniqueFd fd_;
  size_t size_;
  size_t max_bytes_;
  int max_files_;
  uint64_t rotations_ = 0;
  std::string partial_[2];  // by stream: what came after the last newline, at most kMaxCriLineBytes
};

// What the last lines of a log's current file say, within the limits above.
std::string LastLogText(const std::string& path);

// The files of one log, oldest first, the current one last.
std::string RotatedLogPath(const std::string& path, uint64_t number);

}  // namespace muster::agent
