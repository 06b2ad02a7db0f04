// src/agent/runtime/signal_names.h
//
// Signals by name, as images and pods call them: "SIGQUIT", "QUIT", "3", "SIGRTMIN+3".
//
// Thread: any (pure functions).

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::agent {

// nullopt: there is none of that name.
std::optional<int> SignalNamed(std::string_view name);
// "SIGQUIT", as Kubernetes calls it; REQUIRES: a number that SignalNamed gave.
std::string SignalName(int number);

}  // namespace muster::agent
