#include "import/pcap_file_reader.h"

#include <utility>

#include "import/pcapng_file_reader.h"
#include "os/byte_order.h"
#include "packet/pcap_format.h"

namespace capfleet {

namespace {

constexpr uint32_t kPcapMagicModified = 0xA1B2CD34;
/// The modified format has interface index, protocol and packet type after the usual fields.
constexpr uint32_t kModifiedRecordHeaderBytes = 24;
constexpr int64_t kNanosPerMicro = 1000;
constexpr size_t kVersionEnd = 8;  // magic, then the two numbers of the version

bool isPcapMagic(uint32_t magic) {
  return magic == kPcapMagicMicros || magic == kPcapMagicNanos || magic == kPcapMagicModified;
}

}  // namespace

bool PcapFileReader::isSupported(const Format& format) {
  return format.majorVersion == 2 && format.minorVersion <= 4;
}

bool PcapFileReader::accepts(std::span<const uint8_t> start) {
  return start.size() >= 4 && (isPcapMagic(loadLe32(start.data())) ||  //
                               isPcapMagic(loadBe32(start.data())));
}

bool PcapFileReader::isHeader(std::span<const uint8_t> start) {
  if (start.size() < kVersionEnd || !accepts(start)) return false;
  return isSupported(formatOf(start));
}

PcapFileReader::Format PcapFileReader::formatOf(std::span<const uint8_t> start) {
  const bool isBigEndian = !isPcapMagic(loadLe32(start.data()));
  const uint32_t magic = isBigEndian ? loadBe32(start.data()) : loadLe32(start.data());
  const auto load16 = isBigEndian ? loadBe16 : loadLe16;
  return {isBigEndian, magic == kPcapMagicNanos,
          magic == kPcapMagicModified ? kModifiedRecordHeaderBytes : kRecordHeaderBytes,
          load16(start.data() + 4), load16(start.data() + 6)};
}

Result<std::unique_ptr<CaptureFileReader>> PcapFileReader::open(InputStream stream) {
  const auto header = stream.peek(kPcapFileHeaderBytes);
  if (header.size() < kPcapFileHeaderBytes) {
    return Error{Code::kBadCaptureFile, "ends inside the PCAP file header"};
  }
  const Format format = formatOf(header);
  const auto load32 = format.isBigEndian ? loadBe32 : loadLe32;
  if (!isSupported(format)) {
    return Error{Code::kBadCaptureFile,
                 "is PCAP version " + std::to_string(format.majorVersion) + "." +
                     std::to_string(format.minorVersion) +
                     ", but only 2.0 to 2.4 are supported; convert it with editcap -F pcap"};
  }
  const uint32_t linkTypeWord = load32(header.data() + 20);
  stream.consume(kPcapFileHeaderBytes);
  return std::unique_ptr<CaptureFileReader>(
      new PcapFileReader(std::move(stream), format, linkTypeWord));
}

PcapFileReader::PcapFileReader(InputStream stream, Format format, uint32_t linkTypeWord)
    : CaptureFileReader(std::move(stream)), format_(format), linkTypeWord_(linkTypeWord) {}

uint32_t PcapFileReader::load32(const uint8_t* p) const {
  return format_.isBigEndian ? loadBe32(p) : loadLe32(p);
}

ReadStep PcapFileReader::next(CaptureRecord& record) {
  if (!announced_) {
    announced_ = true;
    record.interfaceIndex = 0;
    record.linkTypeWord = linkTypeWord_;
    return ReadStep::kInterface;
  }
  const uint64_t offset = stream_.offset();
  const auto header = stream_.peek(format_.recordHeaderBytes);
  if (header.size() < format_.recordHeaderBytes) {
    if (header.empty() && !stream_.failure()) return ReadStep::kEnd;
    return failShort(offset, "a record header");
  }
  const uint8_t* p = header.data();
  // The fraction may exceed one second; it is carried over, so that no nanosecond is lost.
  record.timestampNs = int64_t{load32(p)} * kNanosPerSecond +
                       int64_t{load32(p + 4)} * (format_.isNanos ? 1 : kNanosPerMicro);
  uint32_t capturedLength = load32(p + 8);
  record.originalLength = load32(p + 12);
  if (format_.minorVersion < 3 ||
      (format_.minorVersion == 3 && capturedLength > record.originalLength)) {
    std::swap(capturedLength, record.originalLength);
  }
  if (capturedLength > kMaxCapturedLength) {
    return fail(offset, "a record claims a captured length of " + std::to_string(capturedLength) +
                            " bytes, more than " + std::to_string(kMaxCapturedLength));
  }
  const size_t recordBytes = format_.recordHeaderBytes + capturedLength;
  const auto whole = stream_.peek(recordBytes);
  if (whole.size() < recordBytes) return failShort(offset, "a packet");
  record.interfaceIndex = 0;
  record.captured = whole.subspan(format_.recordHeaderBytes, capturedLength);
  stream_.consume(recordBytes);
  return record.timestampNs < kTimestampEndNs ? ReadStep::kPacket : ReadStep::kOutOfTimeRange;
}

bool PcapFileReader::isAtJoinedFile() {
  const auto start = stream_.peek(kPcapFileHeaderBytes);
  return isHeader(start) || PcapngFileReader::isSectionHeader(start);
}

}  // namespace capfleet
