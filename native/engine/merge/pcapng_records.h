// Turns a device's pcapng into records that can be merged, while its bytes arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "packet/pcap_format.h"

namespace capfleet {

/// A tagged record begins with the identifier of its interface, little-endian, which counts as
/// captured.
inline constexpr uint32_t kInterfaceTagBytes = 4;

/// Reads pcapng as capfleet devices write it: one section, little-endian, times in nanoseconds. The
/// caller reads the blocks of interfaces, and decides which tag their packets have. The records do
/// not depend on the pieces in which the stream arrives. Not thread-safe.
class PcapngRecords {
 public:
  enum class State {
    kDry,         ///< show more of the stream
    kInterface,   ///< block() describes the next interface: call addInterface()
    kStatistics,  ///< block() are statistics
    kRemark,      ///< block() are the options of a packet, whose record ends here: see remark()
    kBroken,      ///< failure() says why; nothing follows
  };

  /// The packet that the options of kRemark belong to.
  struct Remarked {
    uint32_t tag = 0;
    int64_t timestampNs = 0;
  };

  /// An output must have room for what is shown, and this much more.
  static constexpr size_t kMoreBytes = 32;
  /// Blocks other than packets, and options of a packet, have at most this many bytes.
  static constexpr size_t kMostBlockBytes = size_t{1} << 18;

  /// Passes the next bytes, which must stay valid until kDry. REQUIRES: kDry was returned for those
  /// before.
  void show(std::span<const uint8_t> bytes) { in_ = bytes; }
  /// Appends records to `output`, which already contains `written` bytes; updates that. The last
  /// one may be incomplete.
  State advance(std::span<uint8_t> output, size_t& written);

  /// Answers kInterface. Packets of the interface have this tag.
  void addInterface(uint32_t tag) { tags_.push_back(tag); }

  /// The whole block, or the options; valid until the next call of advance().
  std::span<const uint8_t> block() const { return block_; }
  /// The tag of the statistics' interface. REQUIRES: kStatistics.
  uint32_t statisticsTag() const;
  const Remarked& remark() const { return remarked_; }
  const std::string& failure() const { return failure_; }
  /// Whether the stream may end here: no block is incomplete.
  bool isBetweenBlocks() const {
    return part_ == Part::kFrame && head_.empty() && hasSection_ && failure_.empty();
  }

 private:
  enum class Part : uint8_t {
    kFrame,
    kPacketHead,
    kPacketBytes,
    kPadding,
    kOptions,
    kTrailer,
    kBlock
  };

  bool fillHead(size_t wanted);
  bool fillBlock(size_t wanted);
  std::optional<State> readBlock();
  bool beginBlock();
  bool beginPacket(const uint8_t* head, std::span<uint8_t> output, size_t& written);
  bool passWhole(std::span<uint8_t> output, size_t& written);
  void passBytes(std::span<uint8_t> output, size_t& written);
  State broken(std::string why);

  std::span<const uint8_t> in_;
  Part part_ = Part::kFrame;
  std::vector<uint8_t> head_;   ///< the beginning of a block, or its end, as far as it has arrived
  std::vector<uint8_t> block_;  ///< a whole block other than a packet's, or a packet's options
  std::vector<uint32_t> tags_;  ///< by number of the interface
  size_t blockBytes_ = 0;
  uint32_t left_ = 0;          ///< bytes of the packet, or of the padding, that have not arrived
  uint32_t padding_ = 0;       ///< of the packet
  uint32_t optionsBytes_ = 0;  ///< of the packet
  /// The last byte of a record with a remark, which is completed when the remark is known.
  uint8_t held_ = 0;
  Remarked remarked_;
  bool hasSection_ = false;
  std::string failure_;
};

}  // namespace capfleet
