// Reads a capture file of any supported format, step by step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "import/input_stream.h"
#include "os/result.h"

namespace capfleet {

/// The result of CaptureFileReader::next().
enum class ReadStep {
  kInterface,       ///< packets of interfaceIndex have linkTypeWord from here on
  kPacket,          ///< a packet of an interface that was announced before
  kOutOfTimeRange,  ///< a packet whose timestamp PCAP cannot carry; left out
  kDamage,          ///< nothing more can be read, see damage(); final
  kEnd,             ///< the end of the file, after a whole record; final
};

/// The result of a step; each field belongs to the steps that its comment names.
struct CaptureRecord {
  uint32_t interfaceIndex = 0;        ///< kInterface, kPacket: below kMaxInterfaces
  uint32_t linkTypeWord = 0;          ///< kInterface
  int64_t timestampNs = 0;            ///< kPacket: 0 <= timestampNs < kTimestampEndNs
  uint32_t originalLength = 0;        ///< kPacket: as the file says, even if below the captured
  std::span<const uint8_t> captured;  ///< kPacket: valid until the next step
};

struct ReadDamage {
  uint64_t offset = 0;  ///< offset of the first unreadable record
  std::string message;
};

/// Not thread-safe. Never reads outside its buffer, whatever the bytes are; memory is bounded.
class CaptureFileReader {
 public:
  /// A section may describe at most this many interfaces; each takes a few bytes of memory.
  static constexpr uint32_t kMaxInterfaces = 65'536;
  /// Minimum buffer of a stream: the largest PCAP record of any variant. A pcapng block that is
  /// larger than the buffer counts as damage, so streams of pcapng need room for options too.
  static constexpr size_t kMinBufferBytes = size_t{264} * 1024;

  /// Reads the file header from `stream`, which must have a buffer of kMinBufferBytes. Fails with
  /// kBadCaptureFile if these are not the bytes of a capture file; the message continues
  /// "<path> ...".
  static Result<std::unique_ptr<CaptureFileReader>> open(InputStream stream);

  virtual ~CaptureFileReader() = default;
  CaptureFileReader(const CaptureFileReader&) = delete;
  CaptureFileReader& operator=(const CaptureFileReader&) = delete;

  virtual ReadStep next(CaptureRecord& record) = 0;

  /// Whether another capture file begins at the next bytes, as after `cat a.pcap b.pcap`; next()
  /// would return its header as a packet of 2055, or as damage. Another section of a pcapng file
  /// is not another file. Invalidates the last packet's bytes.
  virtual bool isAtJoinedFile() = 0;
  /// Continues with the file at which `reader` is. Fails like open(). REQUIRES: isAtJoinedFile().
  static Result<std::unique_ptr<CaptureFileReader>> openJoined(
      std::unique_ptr<CaptureFileReader> reader);

  const ReadDamage& damage() const { return damage_; }
  const InputStream& stream() const { return stream_; }

 protected:
  explicit CaptureFileReader(InputStream stream) : stream_(std::move(stream)) {}

  ReadStep fail(uint64_t offset, std::string message);
  /// Fails because the record at `offset` is truncated, and says why.
  ReadStep failShort(uint64_t offset, const char* what);

  InputStream stream_;

 private:
  ReadDamage damage_;
};

}  // namespace capfleet
