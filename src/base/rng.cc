#include "base/rng.h"

#include <sys/random.h>

#include <bit>

#include <fmt/core.h>

#include "base/check.h"

namespace muster {

Rng::Rng(uint64_t seed) {
  // splitmix64, as the authors of xoshiro recommend for seeding.
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

uint64_t Rng::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Rng::Below(uint64_t bound) {
  CHECK(bound > 0);
  // Rejects the tail that would favour small results.
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t value = Next();
  while (value >= limit) value = Next();
  return value % bound;
}

int64_t Rng::Between(int64_t low, int64_t high) {
  CHECK(low <= high);
  return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
}

double Rng::Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

std::string Rng::NameSuffix(int length) {
  static constexpr char kAlphabet[] = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (int i = 0; i < length; ++i) out += kAlphabet[Below(sizeof(kAlphabet) - 1)];
  return out;
}

std::string Rng::Uuid() {
  const uint64_t high = (Next() & ~uint64_t{0xf000}) | 0x4000;
  const uint64_t low = (Next() & ~(uint64_t{3} << 62)) | (uint64_t{1} << 63);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

uint64_t SeedFromSystem() {
  uint64_t seed = 0;
  CHECK(getrandom(&seed, sizeof(seed), 0) == sizeof(seed));
  return seed;
}

}  // namespace muster
