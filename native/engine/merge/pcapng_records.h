// Turns a device's pcapng into records that can be merged, while its bytes arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "packet/pcap_format.h"
#include "packet/pcapng_block.h"

namespace capfleet {

/// A tagged record begins with the identifier of its interface, little-endian, which counts as
/// captured.
inline constexpr uint32_t kInterfaceTagBytes = 4;

/// Between two tagged records are the end of the first one's block, and the type and length of the
/// next: `recordBytes` are those of the first.
inline constexpr uint32_t betweenTaggedRecords(uint32_t recordBytes) {
  return blockPadded(recordBytes) - recordBytes + kBlockTrailerBytes +
         2 * uint32_t{sizeof(uint32_t)};
}

/// Reads pcapng as capfleet devices write it: one section, little-endian, times in nanoseconds. The
/// caller reads the blocks of interfaces, and decides which tag their packets have. Records are
/// written over the blocks of their packets, so that packets are not copied. Not thread-safe.
class PcapngRecords {
 public:
  enum class State {
    kDry,         ///< show more of the stream
    kRecords,     ///< records() are the next ones
    kInterface,   ///< block() describes the next interface: call addInterface()
    kStatistics,  ///< block() are statistics
    kRemark,      ///< block() are the options of the packet that follows: see remark()
    kBroken,      ///< failure() says why; nothing follows
  };

  /// The packet that the options of kRemark belong to.
  struct Remarked {
    uint32_t tag = 0;
    int64_t timestampNs = 0;
  };

  /// Blocks other than packets, and options of a packet, have at most this many bytes.
  static constexpr size_t kMostBlockBytes = size_t{1} << 18;

  /// Passes the next bytes, which must stay valid until kDry, and until the records in them are not
  /// used any more. REQUIRES: kDry was returned for those before.
  void show(std::span<uint8_t> bytes) { in_ = bytes; }
  /// Continues with what is shown. What it returned before is not valid any more.
  State advance();

  /// Answers kInterface. Packets of the interface have this tag.
  void addInterface(uint32_t tag) { tags_.push_back(tag); }

  /// Whole tagged records with betweenTaggedRecords(): several in what is shown, or one elsewhere.
  std::span<const uint8_t> records() const { return records_; }
  /// The whole block, or the options.
  std::span<const uint8_t> block() const { return answer_; }
  /// The tag of the statistics' interface. REQUIRES: kStatistics.
  uint32_t statisticsTag() const;
  const Remarked& remark() const { return remarked_; }
  const std::string& failure() const { return failure_; }
  /// Whether the stream may end here: no block is incomplete.
  bool isBetweenBlocks() const { return block_.empty() && hasSection_ && failure_.empty(); }

 private:
  bool findRecords();
  bool fillBlock(size_t wanted);
  bool checkLength();
  std::optional<State> readBlock();
  State readPacket();
  bool writeRecord(uint8_t* block);
  State broken(std::string why);

  std::span<uint8_t> in_;
  std::vector<uint8_t> block_;  ///< one that did not arrive in one piece, or is no plain packet
  bool isRead_ = false;         ///< block_ was returned
  bool hasRemark_ = false;      ///< the record of block_ follows
  std::span<const uint8_t> records_;
  std::span<const uint8_t> answer_;
  std::vector<uint32_t> tags_;  ///< by number of the interface
  Remarked remarked_;
  bool hasSection_ = false;
  std::string failure_;
};

}  // namespace capfleet
