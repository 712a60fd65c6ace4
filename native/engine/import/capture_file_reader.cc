#include "import/capture_file_reader.h"

#include <algorithm>
#include <cassert>
#include <cstdio>

#include "import/pcap_file_reader.h"
#include "import/pcapng_file_reader.h"

namespace capfleet {

namespace {

std::string describeStart(std::span<const uint8_t> start) {
  std::string text;
  for (const uint8_t byte : start.first(std::min<size_t>(start.size(), 4))) {
    char hex[4];
    std::snprintf(hex, sizeof hex, " %02x", byte);
    text += hex;
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<CaptureFileReader>> CaptureFileReader::open(InputStream stream) {
  assert(stream.bufferBytes() >= kMinBufferBytes);
  const auto start = stream.peek(4);
  if (start.size() < 4 && stream.failure()) {
    return Error{Code::kBadCaptureFile, "cannot be read: " + stream.failure()->message};
  }
  if (start.empty()) return Error{Code::kBadCaptureFile, "is empty"};
  if (PcapFileReader::accepts(start)) return PcapFileReader::open(std::move(stream));
  if (PcapngFileReader::accepts(start)) return PcapngFileReader::open(std::move(stream));
  return Error{
      Code::kBadCaptureFile,
      "is neither PCAP nor pcapng, also not compressed by gzip, zstd, xz, lz4 or bzip2 (it "
      "starts with" +
          describeStart(start) + "); decompress it, or convert it with editcap"};
}

Result<std::unique_ptr<CaptureFileReader>> CaptureFileReader::openJoined(
    std::unique_ptr<CaptureFileReader> reader) {
  return open(std::move(reader->stream_));
}

ReadStep CaptureFileReader::fail(uint64_t offset, std::string message) {
  damage_ = {offset, std::move(message)};
  return ReadStep::kDamage;
}

ReadStep CaptureFileReader::failShort(uint64_t offset, const char* what) {
  if (stream_.failure()) return fail(offset, stream_.failure()->message);
  return fail(offset, std::string("the file ends inside ") + what);
}

}  // namespace capfleet
