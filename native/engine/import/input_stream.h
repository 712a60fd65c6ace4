// A sliding window over the bytes of an input, decompressed if they are compressed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "os/byte_source.h"
#include "os/result.h"

namespace capfleet {

/// Not thread-safe. Uses one buffer and whatever the decoder needs.
class InputStream {
 public:
  static constexpr size_t kDefaultBufferBytes = size_t{1} << 20;
  /// Packets that contain nothing but zeros reach 113 in frames of 1,500 bytes and 580 in jumbo
  /// frames; files made to fill a disk reach 1,000 as gzip and 32,000 as zstd.
  static constexpr uint32_t kDefaultMaxRatio = 200;

  /// Opens a regular file; compression is detected from its first bytes. Beyond the 64 MiB that any
  /// file may become, a file that becomes more than `maxRatio` times its size ends with failure()
  /// and isBomb(). Fails with kBadCaptureFile.
  static Result<InputStream> open(const std::string& path, size_t bufferBytes = kDefaultBufferBytes,
                                  uint32_t maxRatio = kDefaultMaxRatio);

  InputStream(std::unique_ptr<ByteSource> source, bool isCompressed,
              size_t bufferBytes = kDefaultBufferBytes, uint32_t maxRatio = kDefaultMaxRatio);

  /// The next bytes, at least `bytes` of them; fewer only at the end of the input or if failure()
  /// is set. Valid until the next peek(). REQUIRES: bytes <= bufferBytes().
  std::span<const uint8_t> peek(size_t bytes) {
    if (end_ - begin_ < bytes) fill(bytes);
    return {buffer_.get() + begin_, end_ - begin_};
  }

  /// Advances past bytes that peek() returned. They stay valid until the next peek().
  void consume(size_t bytes) {
    begin_ += bytes;
    offset_ += bytes;
  }

  /// Why the bytes end before the end of the input, if they do.
  const std::optional<Error>& failure() const { return failure_; }
  /// Bytes consumed, after decompression.
  uint64_t offset() const { return offset_; }
  /// Bytes read from the file on disk so far.
  uint64_t inputBytes() const { return source_->inputBytes(); }
  bool isCompressed() const { return isCompressed_; }
  /// Whether the bytes end because there are too many for the size of the file.
  bool isBomb() const { return isBomb_; }
  size_t bufferBytes() const { return bufferBytes_; }

 private:
  void fill(size_t bytes);
  void checkRatio();

  std::unique_ptr<ByteSource> source_;
  bool isCompressed_;
  size_t bufferBytes_;
  uint32_t maxRatio_;
  std::unique_ptr<uint8_t[]> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t offset_ = 0;
  bool ended_ = false;
  bool isBomb_ = false;
  std::optional<Error> failure_;
};

}  // namespace capfleet
