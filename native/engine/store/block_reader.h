// Reads blocks of segments and checks them before anything in them is used.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "packet/packet_origin.h"
#include "packet/packet_view.h"
#include "store/segment_file.h"
#include "store/segment_index.h"

namespace capfleet {

/// A block whose checksum matched, with a table of its records. The records are in timestamp order
/// (records with equal timestamps in stored order) and without gaps, so that neighbours can be
/// copied together.
struct LoadedBlock {
  std::vector<uint8_t> bytes;     ///< starting at its first record; bytes after the last record are
                                  ///< not part of the block
  std::vector<uint32_t> offsets;  ///< of each record in bytes; one more for the end
  std::vector<int64_t> timestampsNs;  ///< of each record
  PacketOrigin origin;                ///< of all records; set by the caller that loads the block

  /// The packet of a record; its bytes belong to the block.
  PacketView packet(uint32_t record) const {
    const uint8_t* header = bytes.data() + offsets[record];
    return {{header + kRecordHeaderBytes, loadLe32(header + 8)},
            loadLe32(header + 12),
            timestampsNs[record],
            origin.linkTypeWord,
            origin.stream,
            origin.port};
  }
  uint32_t packets() const { return static_cast<uint32_t>(timestampsNs.size()); }
};

/// Thread-safe.
class BlockReader {
 public:
  /// Reads one block and builds its table. Null if the bytes do not match the checksum or the
  /// index: then nothing in the block may be used. Fails if the disk fails, or with kAgedOut.
  Result<std::unique_ptr<LoadedBlock>> load(const SegmentFile& file, const BlockEntry& entry);
  /// Keeps the block's memory for the next load().
  void give(std::unique_ptr<LoadedBlock> block);

 private:
  std::unique_ptr<LoadedBlock> take(size_t bytes);

  std::mutex mutex_;
  std::vector<std::unique_ptr<LoadedBlock>> spare_;
};

}  // namespace capfleet
