// Reads the tallies of one segment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "os/file.h"
#include "store/block_tally.h"

namespace capfleet {

/// Not thread-safe. The file is opened when a tally is first needed.
class TallyReader {
 public:
  /// `segment` is the path without its ending.
  explicit TallyReader(std::string segment) : path_(std::move(segment) + ".tally") {}

  /// The rows of the block's tally. Nothing if it has none, or if it is damaged or unreadable: then
  /// the packets themselves must be read.
  std::optional<std::vector<TallyRow>> read(const BlockEntry& entry);

 private:
  std::string path_;
  bool isTried_ = false;
  std::optional<File> file_;
  std::vector<uint8_t> bytes_;
};

}  // namespace capfleet
