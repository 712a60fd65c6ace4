// The places at which a test cuts or damages something.
#pragma once

#include <vector>

#include "support/seed.h"

namespace capfleet::test {

/// From `begin` to before `end`: all of them, or with fewer CAPFLEET_TURNS than 100 every seventh,
/// beginning with a random one. Seven has no factor in common with the sizes of fields, so that
/// each byte of a repeated field gets its turn.
inline std::vector<size_t> somePlaces(size_t begin, size_t end) {
  const size_t step = turns(100) < 100 ? 7 : 1;
  std::random_device random;
  std::vector<size_t> places;
  for (size_t at = begin + random() % step; at < end; at += step) places.push_back(at);
  return places;
}

}  // namespace capfleet::test
