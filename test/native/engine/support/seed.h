// The seed of a randomised test: printed, and taken from SEED= to run a failure again.
#pragma once

#include <cstdlib>
#include <iostream>
#include <random>

namespace capfleet::test {

inline std::mt19937_64 seededRandom() {
  const char* given = std::getenv("SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "SEED=" << seed << "\n";
  return std::mt19937_64(seed);
}

/// How often a randomised test turns: a third under the thread sanitizer, where each turn takes ten
/// times as long. The other sanitizers see all of them.
constexpr int turns(int all) {
#ifdef __SANITIZE_THREAD__
  return (all + 2) / 3;
#else
  return all;
#endif
}

inline size_t randomBelow(std::mt19937_64& random, size_t end) { return random() % end; }

}  // namespace capfleet::test
