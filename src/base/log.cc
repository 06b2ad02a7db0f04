#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>

#include "base/time.h"

namespace muster {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::mutex g_sink_mutex;
std::function<void(LogLevel, std::string_view)> g_sink;

constexpr std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarn:
      return "WARN";
    default:
      return "ERROR";
  }
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }

LogLevel GetLogLevel() { return g_level.load(std::memory_order_relaxed); }

void SetLogSink(std::function<void(LogLevel, std::string_view line)> sink) {
  const std::lock_guard lock(g_sink_mutex);
  g_sink = std::move(sink);
}

void LogLine(LogLevel level, fmt::string_view format, fmt::format_args args) {
  std::string line =
      fmt::format("{} {:<5} ", FormatMicroTime(RealClock().Wall()), LevelName(level));
  const size_t start = line.size();
  line += fmt::vformat(format, args);
  for (size_t i = start; i < line.size(); ++i) {
    if (line[i] == '\n' || line[i] == '\r') line[i] = ' ';  // one event, one line
  }
  if (line.size() > kMaxLogLineBytes) line.resize(kMaxLogLineBytes);
  {
    const std::lock_guard lock(g_sink_mutex);
    if (g_sink) return g_sink(level, line);
  }
  line += '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace muster
