// src/base/seeds_test_support.h
//
// How many random runs a property goes through in this build: all of them, or a fifth under
// sanitizers, where each takes several times longer and what they look for shows early.

#pragma once

#include <cstdint>

namespace muster {

#ifdef MUSTER_SANITIZED
inline constexpr int64_t kSeedsDivisor = 5;
#else
inline constexpr int64_t kSeedsDivisor = 1;
#endif

constexpr int64_t SeedsOf(int64_t all) { return all / kSeedsDivisor; }

}  // namespace muster
