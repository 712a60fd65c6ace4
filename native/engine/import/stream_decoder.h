// What the decoders of compressed inputs have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "os/byte_source.h"

namespace capfleet {

/// Decodes another source, which it owns. read() fails with kBadCaptureFile on damaged data and if
/// the input ends early; data decoded before that is returned first. Not thread-safe.
class StreamDecoder : public ByteSource {
 public:
  Result<size_t> read(std::span<uint8_t> out) final;
  uint64_t inputBytes() const final { return input_->inputBytes(); }

 protected:
  struct Progress {
    size_t readBytes = 0;
    size_t writtenBytes = 0;
    std::optional<std::string> damage;  ///< why nothing follows what was written
  };

  /// `format` is its name in messages.
  StreamDecoder(std::unique_ptr<ByteSource> input, std::string format)
      : input_(std::move(input)), format_(std::move(format)) {}

  /// Decodes from `in`, which is empty only at the end of the input, into `out`, which is not.
  virtual Progress decode(std::span<const uint8_t> in, std::span<uint8_t> out) = 0;

  /// Whether the input may end after what was decoded.
  virtual bool isComplete() const = 0;

 private:
  Status refill();

  std::unique_ptr<ByteSource> input_;
  std::string format_;
  std::unique_ptr<uint8_t[]> buffer_;
  std::span<const uint8_t> in_;  ///< of buffer_: not yet decoded
  bool inputEnded_ = false;
  std::optional<Error> failure_;  ///< for the next read(), after what was decoded
};

}  // namespace capfleet
