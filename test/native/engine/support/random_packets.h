// Streams of random packets, with clocks that behave like real ones.
#pragma once

#include <vector>

#include "support/seed.h"
#include "support/stored_streams.h"

namespace capfleet::test {

inline constexpr int64_t kStartNs = 1'700'000'000'123'456'789;

/// How the timestamps of a stream advance.
enum class Clock { kSteady, kAllEqual, kJitter, kSteps };
inline constexpr Clock kClocks[] = {Clock::kSteady, Clock::kAllEqual, Clock::kJitter,
                                    Clock::kSteps};

inline std::vector<StoredPacket> randomPackets(std::mt19937_64& random, Clock clock, size_t count,
                                               size_t mostBytes) {
  static uint32_t number = 0;
  std::vector<StoredPacket> packets;
  int64_t nowNs = kStartNs + static_cast<int64_t>(randomBelow(random, 2000));
  for (size_t i = 0; i < count; i++) {
    if (clock != Clock::kAllEqual) nowNs += static_cast<int64_t>(randomBelow(random, 5));
    if (clock == Clock::kJitter) nowNs -= static_cast<int64_t>(randomBelow(random, 4));
    if (clock == Clock::kSteps && random() % 50 == 0) {
      nowNs += static_cast<int64_t>(randomBelow(random, 4000)) - 2000;
    }
    packets.push_back(numberedPacket(nowNs, number++, randomBelow(random, mostBytes)));
  }
  return packets;
}

}  // namespace capfleet::test
