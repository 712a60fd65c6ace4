#include "import/pcapng_file_reader.h"

#include <algorithm>

#include "import/pcap_file_reader.h"
#include "os/byte_order.h"
#include "packet/pcap_format.h"

namespace capfleet {

namespace {

enum BlockType : uint32_t {
  kInterfaceDescription = 1,
  kObsoletePacket = 2,
  kSimplePacket = 3,
  kEnhancedPacket = 6,
  kSectionHeader = 0x0A0D0D0A,
};

constexpr uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr uint16_t kMajorVersion = 1;
constexpr uint32_t kBlockHeaderBytes = 8;   // type, total length
constexpr uint32_t kBlockTrailerBytes = 4;  // total length again
constexpr uint32_t kMinBlockBytes = kBlockHeaderBytes + kBlockTrailerBytes;
constexpr uint32_t kSkipBytes = 64 * 1024;

enum InterfaceOption : uint16_t {
  kEndOfOptions = 0,
  kTimestampResolution = 9,
  kTimestampOffset = 14,
};

constexpr size_t padded(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

}  // namespace

bool PcapngFileReader::accepts(std::span<const uint8_t> start) {
  // The type of a section header is the same in both byte orders.
  return start.size() >= 4 && loadLe32(start.data()) == kSectionHeader;
}

bool PcapngFileReader::isSectionHeader(std::span<const uint8_t> start) {
  if (start.size() < kMinBlockBytes || !accepts(start)) return false;
  const uint8_t* magic = start.data() + kBlockHeaderBytes;
  return loadLe32(magic) == kByteOrderMagic || loadBe32(magic) == kByteOrderMagic;
}

Result<std::unique_ptr<CaptureFileReader>> PcapngFileReader::open(InputStream stream) {
  std::unique_ptr<PcapngFileReader> reader(new PcapngFileReader(std::move(stream)));
  CaptureRecord unused;
  if (reader->readBlock(unused)) {
    return Error{Code::kBadCaptureFile,
                 "is not a readable pcapng file: " + reader->damage().message};
  }
  return std::unique_ptr<CaptureFileReader>(std::move(reader));
}

ReadStep PcapngFileReader::next(CaptureRecord& record) {
  for (;;) {
    if (const auto step = readBlock(record)) return *step;
  }
}

bool PcapngFileReader::isAtJoinedFile() {
  return PcapFileReader::isHeader(stream_.peek(kPcapFileHeaderBytes));
}

PcapngFileReader::BlockStep PcapngFileReader::readBlock(CaptureRecord& record) {
  blockOffset_ = stream_.offset();
  const auto start = stream_.peek(kMinBlockBytes);
  if (start.empty() && !stream_.failure()) return ReadStep::kEnd;
  if (start.size() < kMinBlockBytes) return failShort(blockOffset_, "a block header");
  const uint32_t type = load32(start.data());
  if (type == kSectionHeader) {
    isBigEndian_ = loadBe32(start.data() + kBlockHeaderBytes) == kByteOrderMagic;
    if (!isBigEndian_ && loadLe32(start.data() + kBlockHeaderBytes) != kByteOrderMagic) {
      return failBlock("a section header has no byte order");
    }
  }
  const uint32_t blockBytes = load32(start.data() + 4);
  if (blockBytes < kMinBlockBytes || blockBytes % 4 != 0) {
    return failBlock("a block claims an impossible length of " + std::to_string(blockBytes) +
                     " bytes");
  }
  switch (type) {
    case kSectionHeader:
    case kInterfaceDescription:
    case kEnhancedPacket:
    case kSimplePacket:
    case kObsoletePacket:
      return readKnownBlock(type, blockBytes, record);
    default:
      return skipBlock(blockBytes);
  }
}

PcapngFileReader::BlockStep PcapngFileReader::readKnownBlock(uint32_t type, uint32_t blockBytes,
                                                             CaptureRecord& record) {
  if (blockBytes > stream_.bufferBytes()) {
    return failBlock("a block claims " + std::to_string(blockBytes) +
                     " bytes, more than any packet needs");
  }
  const auto block = stream_.peek(blockBytes);
  if (block.size() < blockBytes) return failShort(blockOffset_, "a block");
  if (load32(block.data() + blockBytes - kBlockTrailerBytes) != blockBytes) {
    return failBlock("the two lengths of a block differ");
  }
  const auto body = block.subspan(kBlockHeaderBytes, blockBytes - kMinBlockBytes);
  stream_.consume(blockBytes);
  switch (type) {
    case kSectionHeader:
      return readSection(body);
    case kInterfaceDescription:
      return readInterface(body, record);
    case kEnhancedPacket:
      return readEnhancedPacket(body, record);
    case kSimplePacket:
      return readSimplePacket(body, record);
    default:
      return readObsoletePacket(body, record);
  }
}

/// In pieces: such a block may be longer than the buffer.
PcapngFileReader::BlockStep PcapngFileReader::skipBlock(uint32_t blockBytes) {
  uint32_t left = blockBytes - kBlockTrailerBytes;
  while (left > 0) {
    const uint32_t piece = std::min(left, kSkipBytes);
    if (stream_.peek(piece).size() < piece) return failShort(blockOffset_, "a block");
    stream_.consume(piece);
    left -= piece;
  }
  const auto trailer = stream_.peek(kBlockTrailerBytes);
  if (trailer.size() < kBlockTrailerBytes) return failShort(blockOffset_, "a block");
  if (load32(trailer.data()) != blockBytes) return failBlock("the two lengths of a block differ");
  stream_.consume(kBlockTrailerBytes);
  return std::nullopt;
}

PcapngFileReader::BlockStep PcapngFileReader::readSection(std::span<const uint8_t> body) {
  constexpr size_t kFieldsBytes = 16;
  if (body.size() < kFieldsBytes) return failBlock("a section header is too short");
  if (const uint16_t major = load16(body.data() + 4); major != kMajorVersion) {
    return failBlock("a section has pcapng version " + std::to_string(major) +
                     ", but only 1 is supported");
  }
  interfaces_.clear();
  return std::nullopt;
}

PcapngFileReader::BlockStep PcapngFileReader::readInterface(std::span<const uint8_t> body,
                                                            CaptureRecord& record) {
  constexpr size_t kFieldsBytes = 8;
  if (body.size() < kFieldsBytes) return failBlock("an interface description is too short");
  if (interfaces_.size() == kMaxInterfaces) {
    return failBlock("a section has more than " + std::to_string(kMaxInterfaces) + " interfaces");
  }
  const auto timestamp = readTimestampOptions(body.subspan(kFieldsBytes));
  if (!timestamp) return failBlock("the options of an interface description are damaged");
  record.interfaceIndex = static_cast<uint32_t>(interfaces_.size());
  record.linkTypeWord = load16(body.data());
  interfaces_.push_back({load32(body.data() + 4), *timestamp});
  return ReadStep::kInterface;
}

std::optional<PcapngTimestamp> PcapngFileReader::readTimestampOptions(
    std::span<const uint8_t> options) const {
  uint8_t resolution = 6;
  int64_t offsetSeconds = 0;
  while (options.size() >= 4) {
    const uint16_t code = load16(options.data());
    const uint16_t length = load16(options.data() + 2);
    options = options.subspan(4);
    if (code == kEndOfOptions) break;
    if (padded(length) > options.size()) return std::nullopt;
    if (code == kTimestampResolution) {
      if (length != 1) return std::nullopt;
      resolution = options[0];
    } else if (code == kTimestampOffset) {
      if (length != 8) return std::nullopt;
      offsetSeconds = static_cast<int64_t>(load64(options.data()));
    }
    options = options.subspan(padded(length));
  }
  return PcapngTimestamp(resolution, offsetSeconds);
}

PcapngFileReader::BlockStep PcapngFileReader::readEnhancedPacket(std::span<const uint8_t> body,
                                                                 CaptureRecord& record) {
  constexpr size_t kFieldsBytes = 20;
  if (body.size() < kFieldsBytes) return failBlock("a packet block is too short");
  const uint8_t* p = body.data();
  const uint64_t ticks = (uint64_t{load32(p + 4)} << 32) | load32(p + 8);
  return readPacket({load32(p), ticks, load32(p + 12), load32(p + 16), body.subspan(kFieldsBytes)},
                    record);
}

PcapngFileReader::BlockStep PcapngFileReader::readSimplePacket(std::span<const uint8_t> body,
                                                               CaptureRecord& record) {
  constexpr size_t kFieldsBytes = 4;
  if (body.size() < kFieldsBytes) return failBlock("a packet block is too short");
  if (interfaces_.empty()) return failBlock("a packet has no interface description before it");
  const uint32_t originalLength = load32(body.data());
  const uint32_t snaplen = interfaces_[0].snaplen;  // 0 means without limit
  const uint32_t capturedLength = snaplen == 0 ? originalLength : std::min(originalLength, snaplen);
  return readPacket({0, std::nullopt, capturedLength, originalLength, body.subspan(kFieldsBytes)},
                    record);
}

PcapngFileReader::BlockStep PcapngFileReader::readObsoletePacket(std::span<const uint8_t> body,
                                                                 CaptureRecord& record) {
  constexpr size_t kFieldsBytes = 20;
  if (body.size() < kFieldsBytes) return failBlock("a packet block is too short");
  const uint8_t* p = body.data();
  const uint64_t ticks = (uint64_t{load32(p + 4)} << 32) | load32(p + 8);
  return readPacket({load16(p), ticks, load32(p + 12), load32(p + 16), body.subspan(kFieldsBytes)},
                    record);
}

PcapngFileReader::BlockStep PcapngFileReader::readPacket(const PacketFields& fields,
                                                         CaptureRecord& record) {
  if (fields.interfaceIndex >= interfaces_.size()) {
    return failBlock("a packet has no interface description before it");
  }
  if (fields.capturedLength > kMaxCapturedLength || fields.capturedLength > fields.bytes.size()) {
    return failBlock("a packet claims a captured length of " +
                     std::to_string(fields.capturedLength) +
                     " bytes, more than its block or the limit of " +
                     std::to_string(kMaxCapturedLength) + " allows");
  }
  record.interfaceIndex = fields.interfaceIndex;
  record.originalLength = fields.originalLength;
  record.captured = fields.bytes.first(fields.capturedLength);
  const auto nanos = fields.ticks
                         ? interfaces_[fields.interfaceIndex].timestamp.toNanos(*fields.ticks)
                         : int64_t{0};
  if (!nanos) return ReadStep::kOutOfTimeRange;
  record.timestampNs = *nanos;
  return ReadStep::kPacket;
}

uint16_t PcapngFileReader::load16(const uint8_t* p) const {
  return isBigEndian_ ? loadBe16(p) : loadLe16(p);
}

uint32_t PcapngFileReader::load32(const uint8_t* p) const {
  return isBigEndian_ ? loadBe32(p) : loadLe32(p);
}

uint64_t PcapngFileReader::load64(const uint8_t* p) const {
  return isBigEndian_ ? loadBe64(p) : loadLe64(p);
}

}  // namespace capfleet
