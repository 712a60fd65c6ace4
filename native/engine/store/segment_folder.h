// Which segments lie in the folder of a capture port.
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

/// Numbers of all segments of which any file exists, ascending; none when there is no such folder.
/// Fails with kStoreUnavailable.
Result<std::vector<uint32_t>> listSegments(const std::string& directory);

}  // namespace capfleet
