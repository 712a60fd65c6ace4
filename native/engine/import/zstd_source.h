// Decodes zstd, one frame or many, skippable frames left out.
#pragma once

#include <memory>

#include "os/byte_source.h"

namespace capfleet {

/// Accepts windows up to 128 MiB (windowLog 27) and then uses that memory. Fails with
/// kBadCaptureFile on damaged data and when the input ends inside a frame; what was decoded before
/// is delivered first.
class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> input);
  ~ZstdSource() override;
  Result<size_t> read(std::span<uint8_t> out) override;
  uint64_t inputBytes() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capfleet
