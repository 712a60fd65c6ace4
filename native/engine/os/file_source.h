// The bytes of a regular file, from its start.
#pragma once

#include "os/byte_source.h"
#include "os/file.h"

namespace capfleet {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(File file) : file_(std::move(file)) {}

  Result<size_t> read(std::span<uint8_t> out) override {
    const auto count = file_.readAt(offset_, out);
    if (count) offset_ += *count;
    return count;
  }

  uint64_t inputBytes() const override { return offset_; }

 private:
  File file_;
  uint64_t offset_ = 0;
};

}  // namespace capfleet
