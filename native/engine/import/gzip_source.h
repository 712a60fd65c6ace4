// Decodes gzip, one member or many.
#pragma once

#include <memory>

#include "os/byte_source.h"

namespace capfleet {

/// Fails with kBadCaptureFile on damaged data, on a wrong checksum, and when the input ends inside
/// a member; what was decoded before is delivered first. Zeros after the last member are padding,
/// other bytes there are damage.
class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> input);
  ~GzipSource() override;
  Result<size_t> read(std::span<uint8_t> out) override;
  uint64_t inputBytes() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capfleet
