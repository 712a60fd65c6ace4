// Turns the packet blocks of a download into a pcapng file: describes interfaces before their first
// packet, and adds remarks to packets.
#pragma once

#include <cstdint>
#include <vector>

#include "download/packet_batch.h"

namespace capfleet {

struct PcapngInterface {
  uint32_t port = 0;
  uint32_t linkType = 0;
  std::vector<uint8_t> description;  ///< its Interface Description Block
};

/// Options for the first packet block at or after a time.
struct PcapngRemark {
  int64_t atNs = 0;
  std::vector<uint8_t> options;  ///< padded, without the end of options
};

/// What a download in pcapng consists of beside its packets. The caller has made the blocks.
struct PcapngOptions {
  std::vector<uint8_t> head;                ///< the file begins with these blocks
  std::vector<PcapngInterface> interfaces;  ///< all that the segments' entries mention
  /// The head, or what precedes the download, describes this many of the interfaces.
  uint32_t described = 0;
  std::vector<PcapngRemark> remarks;  ///< by time
  /// The whole file has at most this many bytes beside its packets, also with what the caller adds
  /// at its end.
  uint64_t otherBytes = 0;

  /// Bytes of all descriptions and remarks that the download may insert.
  size_t insertedBytes() const;
};

/// Each batch leaves this much room at least, beside what is inserted, for a packet of any size.
inline constexpr size_t kMostInsertedBytes = kSlabBytes / 2;

/// Processes all batches of a download in order; what it inserts does not depend on how the packets
/// are divided into batches. Not thread-safe.
class PcapngFraming {
 public:
  explicit PcapngFraming(const PcapngOptions& options);

  /// Inserts what belongs before or into the blocks of the batch, which has the reserved room.
  void frame(PacketBatch& batch);

  /// Packets so far, by interface.
  const std::vector<uint64_t>& packets() const { return packets_; }
  /// How many interfaces have been described, in their order.
  uint32_t described() const { return described_; }
  /// How many remarks a packet has, in their order.
  uint32_t remarked() const { return remarked_; }

 private:
  size_t describeUpTo(uint32_t interfaceNumber, Slab& slab, size_t at);
  void remark(int64_t timestampNs, Slab& slab, size_t at);

  const std::vector<PcapngInterface> interfaces_;
  const std::vector<PcapngRemark> remarks_;
  std::vector<uint64_t> packets_;
  uint32_t described_;
  uint32_t remarked_ = 0;
};

}  // namespace capfleet
