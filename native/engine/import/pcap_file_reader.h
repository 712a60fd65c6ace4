// Reads classic PCAP: microseconds or nanoseconds, either byte order, including the modified format
// of some Linux tools (magic a1b2cd34, 24-byte record headers).
#pragma once

#include "import/capture_file_reader.h"

namespace capfleet {

class PcapFileReader final : public CaptureFileReader {
 public:
  /// Whether the first 4 bytes of a file are those of this format.
  static bool accepts(std::span<const uint8_t> start);
  /// Whether the bytes begin with a file header, and not with a record of the one second in 2055
  /// whose number is the magic: they also have a version that open() accepts.
  static bool isHeader(std::span<const uint8_t> start);
  /// Fails with kBadCaptureFile like CaptureFileReader::open(). REQUIRES: accepts().
  static Result<std::unique_ptr<CaptureFileReader>> open(InputStream stream);

  /// The only interface has index 0. A record that claims more than kMaxCapturedLength counts as
  /// damage.
  ReadStep next(CaptureRecord& record) override;
  bool isAtJoinedFile() override;

 private:
  struct Format {
    bool isBigEndian;
    bool isNanos;
    uint32_t recordHeaderBytes;
    uint16_t majorVersion;
    /// The second number of the version. Before 2.3 the two lengths of a record are swapped; in
    /// files of 2.3 they are in either order.
    uint16_t minorVersion;
  };

  /// REQUIRES: accepts(), and at least 8 bytes.
  static Format formatOf(std::span<const uint8_t> start);
  static bool isSupported(const Format& format);
  PcapFileReader(InputStream stream, Format format, uint32_t linkTypeWord);
  uint32_t load32(const uint8_t* p) const;

  Format format_;
  uint32_t linkTypeWord_;
  bool announced_ = false;
};

}  // namespace capfleet
