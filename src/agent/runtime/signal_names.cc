#include "agent/runtime/signal_names.h"

#include <signal.h>

#include <array>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr std::string_view kLowest = "RTMIN", kHighest = "RTMAX";

// Second names; the C library knows one of each.
constexpr std::array<std::pair<std::string_view, int>, 4> kAlso = {
    {{"CLD", SIGCHLD}, {"IOT", SIGABRT}, {"IO", SIGIO}, {"POLL", SIGPOLL}}};

// "RTMIN", "RTMIN+3", "RTMAX-2".
std::optional<int> RealTimeSignal(std::string_view name) {
  const bool from_lowest = name.starts_with(kLowest);
  if (!from_lowest && !name.starts_with(kHighest)) return std::nullopt;
  name.remove_prefix(kLowest.size());
  int distance = 0;
  if (!name.empty()) {
    if (name.front() != (from_lowest ? '+' : '-')) return std::nullopt;
    const std::optional<int64_t> number = ParseInt(name.substr(1));
    if (!number || *number < 1 || *number > SIGRTMAX - SIGRTMIN) return std::nullopt;
    distance = static_cast<int>(*number);
  }
  return from_lowest ? SIGRTMIN + distance : SIGRTMAX - distance;
}

}  // namespace

std::optional<int> SignalNamed(std::string_view name) {
  if (const std::optional<int64_t> number = ParseInt(name))
    return *number > 0 && *number < NSIG ? std::optional(static_cast<int>(*number)) : std::nullopt;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const auto& [also, number] : kAlso) {
    if (name == also) return number;
  }
  for (int number = 1; number < NSIG; ++number) {
    const char* abbreviation = sigabbrev_np(number);
    if (abbreviation != nullptr && name == abbreviation) return number;
  }
  return RealTimeSignal(name);
}

std::string SignalName(int number) {
  if (const char* abbreviation = sigabbrev_np(number)) return fmt::format("SIG{}", abbreviation);
  const int middle = (SIGRTMIN + SIGRTMAX) / 2;
  if (number < SIGRTMIN) return fmt::format("{}", number);  // the C library's own
  if (number == SIGRTMIN) return "SIGRTMIN";
  if (number == SIGRTMAX) return "SIGRTMAX";
  return number <= middle ? fmt::format("SIGRTMIN+{}", number - SIGRTMIN)
                          : fmt::format("SIGRTMAX-{}", SIGRTMAX - number);
}

}  // namespace muster::agent
