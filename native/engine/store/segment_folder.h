// Which segments are in the folder of a capture port: in its groups' subfolders, and directly in
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/result.h"

namespace capfleet {

/// The folder of a port in the folder of a capture.
inline std::string portFolder(const std::string& captureFolder, uint32_t port) {
  return captureFolder + "/cap" + std::to_string(port);
}

/// A segment of which at least one file exists.
struct FoundSegment {
  uint32_t number = 0;
  /// Its files are directly in the port's folder, as in stores of format 1.
  bool isFlat = false;
  bool operator==(const FoundSegment&) const = default;
};

/// The segments with a number above `afterNumber`, ascending; none if the folder does not exist.
/// Lists the port's folder, and only those groups that can contain such numbers. Fails with
/// kStoreUnavailable. Thread-safe, like newestSegment().
Result<std::vector<FoundSegment>> listSegments(const std::string& portFolder,
                                               uint32_t afterNumber = 0);

/// The segment with the highest number, or number 0 if the folder has none. Lists only the newest
/// group that holds a segment.
Result<FoundSegment> newestSegment(const std::string& portFolder);

}  // namespace capfleet
