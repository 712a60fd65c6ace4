// The names of a segment's files: eight digits, counted from 1, and an ending.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace capfleet {

/// The endings of all files of a segment. Files are removed in this order, the packets last: while
/// these are there, the rest can be made again.
inline constexpr std::array kSegmentEndings = {".idx", ".tally", ".sieve", ".pcap"};

/// Segments of one subfolder: a folder with hundreds of thousands of files is slow to list.
inline constexpr uint32_t kSegmentsPerGroup = 1000;

inline std::string zeroPadded(uint32_t number, size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(text.size() < digits ? digits - text.size() : 0, '0') + text;
}

/// The subfolder of a port's folder that holds this segment: 00000 for 1 to 999, 00001 for 1000 to
/// 1999.
inline std::string groupFolder(const std::string& portFolder, uint32_t number) {
  return portFolder + "/" + zeroPadded(number / kSegmentsPerGroup, 5);
}

/// The path of a segment without ending, where writers put it today.
inline std::string groupedSegmentPath(const std::string& portFolder, uint32_t number) {
  return groupFolder(portFolder, number) + "/" + zeroPadded(number, 8);
}

/// The path of a segment without ending directly in `directory`: where stores of format 1 have it,
/// and the runs of an import.
inline std::string segmentPath(const std::string& directory, uint32_t number) {
  return directory + "/" + zeroPadded(number, 8);
}

/// Where the sieves of a segment are; `segment` is the path without ending.
inline std::string sievePath(const std::string& segment) { return segment + ".sieve"; }

}  // namespace capfleet
