// The names of a segment's files: eight digits, counted from 1, and an ending.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace capfleet {

/// The endings of all files of a segment. Files are removed in this order, the packets last: while
/// these are there, the rest can be made again.
inline constexpr std::array kSegmentEndings = {".idx", ".tally", ".sieve", ".pcap"};

/// The path without ending.
inline std::string segmentPath(const std::string& directory, uint32_t number) {
  constexpr size_t kDigits = 8;
  const std::string digits = std::to_string(number);
  const size_t zeros = digits.size() < kDigits ? kDigits - digits.size() : 0;
  return directory + "/" + std::string(zeros, '0') + digits;
}

/// Where the sieves of a segment are; `segment` is the path without ending.
inline std::string sievePath(const std::string& segment) { return segment + ".sieve"; }

}  // namespace capfleet
