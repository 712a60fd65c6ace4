// Reads classic PCAP: microseconds or nanoseconds, either byte order, also the modified format of
// some Linux tools (magic a1b2cd34, 24-byte record headers).
#pragma once

#include "import/capture_file_reader.h"

namespace capfleet {

class PcapFileReader final : public CaptureFileReader {
 public:
  /// Whether the first 4 bytes of a file are those of this format.
  static bool accepts(std::span<const uint8_t> start);
  /// Fails with kBadCaptureFile as CaptureFileReader::open() does. REQUIRES: accepts().
  static Result<std::unique_ptr<CaptureFileReader>> open(InputStream stream);

  /// The one interface has index 0. A record that claims more than kMaxCapturedLength is damage.
  ReadStep next(CaptureRecord& record) override;

 private:
  struct Format {
    bool isBigEndian;
    bool isNanos;
    uint32_t recordHeaderBytes;
    /// The second number of the version. Before 2.3 the two lengths of a record stand in the other
    /// order; in files of 2.3 in either one.
    uint16_t minorVersion;
  };

  static Format formatOf(std::span<const uint8_t> start);
  PcapFileReader(InputStream stream, Format format, uint32_t linkTypeWord);
  uint32_t load32(const uint8_t* p) const;

  Format format_;
  uint32_t linkTypeWord_;
  bool announced_ = false;
};

}  // namespace capfleet
