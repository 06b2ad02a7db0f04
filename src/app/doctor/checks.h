// src/app/doctor/checks.h
//
// The judgement of `muster doctor`: for every fact that pods depend on one line that says how it is
// and, where it is not well, what to do.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/doctor/host_facts.h"

namespace muster::app {

// Below these nothing is started; the node itself tells of pressure much earlier (DiskGuard).
inline constexpr int64_t kMinFreeDiskBytes = int64_t{32} << 20;
inline constexpr int64_t kMinFreeInodes = 1000;

inline constexpr const char* kRangesSubject = "address ranges";

enum class Verdict : uint8_t { kOk, kWarn, kFail };  // kFail: `muster up` cannot work

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string subject;  // "forward policy"
  std::string message;
  std::string fix;  // a command where possible; "" when ok
  // What the Node has a condition for, and `muster up` says once it runs: not before, too.
  bool node_says = false;
};

// In a fixed order, every subject once (ports: one each).
std::vector<Finding> Examine(const HostFacts& facts);
bool AnyFailed(const std::vector<Finding>& findings);

// The ranges of this cluster: those that it has, or the ones to choose. nullopt: there are none.
std::optional<agent::AddressRanges> RangesFor(const HostFacts& facts);

// The chains of others that drop what is forwarded to or from pods, as "table ip filter, chain
// FORWARD", by what `nft list ruleset` and `iptables-legacy -S` print. A chain that accepts by the
// name of our bridge is none.
std::vector<std::string> DroppingChains(std::string_view nft_rules);
bool LegacyDrops(std::string_view iptables_rules);

}  // namespace muster::app
