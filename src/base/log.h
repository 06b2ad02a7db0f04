// src/base/log.h
//
// One line per event: `component: verb object key=value`, lower-case start, no full stop. ERROR =
// act now, WARN, INFO = a state change, DEBUG. No secret ever goes into a log.
//
//   LOG_INFO("scheduler: bound pod {}/{} node={}", ns, name, node);
//
// Thread: any. Lines go to standard error in one write(2) each; lines over kMaxLogLineBytes are
//         cut.

#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include <fmt/core.h>

namespace muster {

enum class LogLevel : int { kDebug, kInfo, kWarn, kError, kNone };

inline constexpr size_t kMaxLogLineBytes = 8192;

void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();
// Replaces standard error as the place where lines go (tests, the CLI); an empty function restores
// it.
void SetLogSink(std::function<void(LogLevel, std::string_view line)> sink);
void LogLine(LogLevel level, fmt::string_view format, fmt::format_args args);

template <class... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level >= GetLogLevel()) LogLine(level, format, fmt::make_format_args(args...));
}

}  // namespace muster

#define LOG_DEBUG(...) ::muster::Log(::muster::LogLevel::kDebug, __VA_ARGS__)
#define LOG_INFO(...) ::muster::Log(::muster::LogLevel::kInfo, __VA_ARGS__)
#define LOG_WARN(...) ::muster::Log(::muster::LogLevel::kWarn, __VA_ARGS__)
#define LOG_ERROR(...) ::muster::Log(::muster::LogLevel::kError, __VA_ARGS__)
