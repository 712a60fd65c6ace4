// The name of a segment: eight digits, counted from 1.
#pragma once

#include <cstdint>
#include <string>

namespace capfleet {

/// The path without ending; a segment has a .pcap, an .idx, a .tally and a .sieve file.
inline std::string segmentPath(const std::string& directory, uint32_t number) {
  constexpr size_t kDigits = 8;
  const std::string digits = std::to_string(number);
  const size_t zeros = digits.size() < kDigits ? kDigits - digits.size() : 0;
  return directory + "/" + std::string(zeros, '0') + digits;
}

}  // namespace capfleet
