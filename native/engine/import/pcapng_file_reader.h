// Reads pcapng: any number of sections in either byte order, Enhanced, Simple and (obsolete) Packet
// Blocks. Blocks without packets are skipped.
#pragma once

#include <optional>
#include <vector>

#include "import/capture_file_reader.h"
#include "import/pcapng_timestamp.h"

namespace capfleet {

class PcapngFileReader final : public CaptureFileReader {
 public:
  /// Whether the first 4 bytes of a file are those of this format.
  static bool accepts(std::span<const uint8_t> start);
  /// Whether the bytes begin with a section header that has a byte order.
  static bool isSectionHeader(std::span<const uint8_t> start);
  /// Fails with kBadCaptureFile like CaptureFileReader::open(). REQUIRES: accepts().
  static Result<std::unique_ptr<CaptureFileReader>> open(InputStream stream);

  /// Interface indexes are relative to the section, each of which describes its own interfaces. A
  /// Simple Packet has no time: its timestamp is 0, as tcpdump and Wireshark show it.
  ReadStep next(CaptureRecord& record) override;
  bool isAtJoinedFile() override;

 private:
  struct Interface {
    uint32_t snaplen = 0;
    PcapngTimestamp timestamp;
  };
  /// Where a packet block has its packet.
  struct PacketFields {
    uint32_t interfaceIndex;
    std::optional<uint64_t> ticks;
    uint32_t capturedLength;
    uint32_t originalLength;
    std::span<const uint8_t> bytes;  ///< from the packet's first byte to the end of the block
  };
  /// nullopt: the block was read and contains nothing to return.
  using BlockStep = std::optional<ReadStep>;

  explicit PcapngFileReader(InputStream stream) : CaptureFileReader(std::move(stream)) {}

  BlockStep readBlock(CaptureRecord& record);
  BlockStep readKnownBlock(uint32_t type, uint32_t blockBytes, CaptureRecord& record);
  BlockStep skipBlock(uint32_t blockBytes);
  BlockStep readSection(std::span<const uint8_t> body);
  BlockStep readInterface(std::span<const uint8_t> body, CaptureRecord& record);
  BlockStep readEnhancedPacket(std::span<const uint8_t> body, CaptureRecord& record);
  BlockStep readSimplePacket(std::span<const uint8_t> body, CaptureRecord& record);
  BlockStep readObsoletePacket(std::span<const uint8_t> body, CaptureRecord& record);
  BlockStep readPacket(const PacketFields& fields, CaptureRecord& record);
  std::optional<PcapngTimestamp> readTimestampOptions(std::span<const uint8_t> options) const;
  BlockStep failBlock(std::string message) { return fail(blockOffset_, std::move(message)); }

  uint16_t load16(const uint8_t* p) const;
  uint32_t load32(const uint8_t* p) const;
  uint64_t load64(const uint8_t* p) const;

  bool isBigEndian_ = false;
  uint64_t blockOffset_ = 0;
  std::vector<Interface> interfaces_;
};

}  // namespace capfleet
