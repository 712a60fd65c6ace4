// The names of a segment's files: eight digits, counted from 1, and an ending.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
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

/// The name of a group's subfolder: 00000 holds the segments 1 to 999, 00001 those from 1000 to
/// 1999.
inline std::string groupName(uint32_t group) { return zeroPadded(group, 5); }

/// The subfolder of a port's folder that holds this segment.
inline std::string groupFolder(const std::string& portFolder, uint32_t number) {
  return portFolder + "/" + groupName(number / kSegmentsPerGroup);
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

/// The path without ending of a segment that exists; `isFlat` as in FoundSegment.
inline std::string storedSegmentPath(const std::string& portFolder, uint32_t number, bool isFlat) {
  return isFlat ? segmentPath(portFolder, number) : groupedSegmentPath(portFolder, number);
}

/// Whether this is the name of a group's subfolder.
inline bool isGroupName(const std::string& name) {
  return name.size() >= groupName(0).size() &&
         name.find_first_not_of("0123456789") == std::string::npos;
}

/// Where a segment belongs.
struct SegmentPlace {
  std::string portFolder;
  uint32_t number;
};
/// The inverse of storedSegmentPath().
inline SegmentPlace placeOfSegment(const std::string& segment) {
  const std::filesystem::path path(segment);
  const std::filesystem::path folder = path.parent_path();
  return {isGroupName(folder.filename()) ? folder.parent_path() : folder,
          static_cast<uint32_t>(std::strtoul(path.filename().c_str(), nullptr, 10))};
}

/// Number of segments whose addresses are in one file.
inline constexpr uint32_t kSegmentsPerAddressTable = 64;

/// Whether its table is complete with the addresses of this segment.
inline bool isLastOfAddressTable(uint32_t number) {
  return (number + 1) % kSegmentsPerAddressTable == 0;
}

/// The file with the addresses of this segment and its neighbours; directly in the port's folder.
inline std::string addressTablePath(const std::string& portFolder, uint32_t number) {
  const uint32_t first = number / kSegmentsPerAddressTable * kSegmentsPerAddressTable;
  return portFolder + "/" + zeroPadded(first, 8) + ".addresses";
}

/// Where the sieves of a segment are; `segment` is the path without ending.
inline std::string sievePath(const std::string& segment) { return segment + ".sieve"; }

}  // namespace capfleet
