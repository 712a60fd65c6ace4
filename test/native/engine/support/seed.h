// The seed of a randomised test: printed, and read from SEED= to repeat a failure.
#pragma once

#include <algorithm>
#include <cstdint>
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

/// How many iterations a randomised test runs: CAPFLEET_TURNS percent of `all`, but at least
/// `least`; all if it is not set. A third of that under the thread sanitizer, where each iteration
/// takes ten times as long.
inline int turns(int all, int least = 1) {
  static const int64_t percent = [] {
    const char* const asked = std::getenv("CAPFLEET_TURNS");
    return asked == nullptr ? int64_t{100} : std::atoll(asked);
  }();
#ifdef __SANITIZE_THREAD__
  constexpr int64_t kPart = 3;
#else
  constexpr int64_t kPart = 1;
#endif
  return static_cast<int>(std::max<int64_t>(least, all * percent / (100 * kPart)));
}

inline size_t randomBelow(std::mt19937_64& random, size_t end) { return random() % end; }

}  // namespace capfleet::test
