// src/base/check.h
//
// CHECK is for what can only be a bug of ours; it stays on in release builds and ends the process
// with the place and the condition. Untrusted input never reaches a CHECK: it gets a Status.

#pragma once

#include <string_view>

namespace muster {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message = {});

}  // namespace muster

#define CHECK(condition)                                     \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::muster::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (0)

#define CHECK_MSG(condition, message)                                 \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::muster::CheckFailed(__FILE__, __LINE__, #condition, message); \
  } while (0)
