// src/base/rng.h
//
// Seeded randomness (xoshiro256**, Blackman and Vigna 2018). Nothing else in the program draws
// random numbers, so a seed replays a run. Not for keys: those come from OpenSSL in `net`.
//
// Thread: not shared; each owner has its own.

#pragma once

#include <cstdint>
#include <string>

namespace muster {

class Rng {
 public:
  explicit Rng(uint64_t seed);

  uint64_t Next();
  // Uniform in [0, bound). REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound);
  // Uniform in [low, high]. REQUIRES: low <= high.
  int64_t Between(int64_t low, int64_t high);
  double Unit();  // [0, 1)
  bool Chance(double probability) { return Unit() < probability; }

  // `length` letters of the alphabet that generateName uses (no vowels: no words).
  std::string NameSuffix(int length);
  // RFC 4122 version 4.
  std::string Uuid();

 private:
  uint64_t state_[4];
};

// A seed from the operating system, for the composition root only.
uint64_t SeedFromSystem();

}  // namespace muster
