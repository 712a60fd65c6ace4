#include <isa-l/igzip_lib.h>

#include <optional>

#include "import/decoders.h"

namespace capfleet {

namespace {

constexpr uint32_t kInputBufferBytes = 256 * 1024;
constexpr uint8_t kMemberFirstByte = 0x1F;

Error damaged(const char* what) { return {Code::kBadCaptureFile, what}; }

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> input) : input_(std::move(input)) {
    isal_inflate_init(&inflate_);
    inflate_.crc_flag = ISAL_GZIP;
  }
  Result<size_t> read(std::span<uint8_t> out) override;
  uint64_t inputBytes() const override { return input_->inputBytes(); }

 private:
  Status refill();
  Result<bool> findNextMember();
  void step();

  std::unique_ptr<ByteSource> input_;
  std::unique_ptr<uint8_t[]> buffer_ = std::make_unique_for_overwrite<uint8_t[]>(kInputBufferBytes);
  inflate_state inflate_{};
  bool inputEnded_ = false;
  bool memberEnded_ = false;
  std::optional<Error> failure_;  ///< for the next read(), after what was decoded
};

Result<size_t> GzipSource::read(std::span<uint8_t> out) {
  for (;;) {
    if (failure_) return *failure_;
    if (memberEnded_) {
      const auto found = findNextMember();
      if (!found) return found.error();
      if (!*found) return size_t{0};
    }
    if (auto status = refill(); !status) return status.error();
    inflate_.next_out = out.data();
    inflate_.avail_out = static_cast<uint32_t>(out.size());
    step();
    if (const size_t count = out.size() - inflate_.avail_out; count > 0) return count;
    if (inputEnded_ && !memberEnded_ && !failure_) failure_ = damaged("the gzip data ends early");
  }
}

Status GzipSource::refill() {
  if (inflate_.avail_in > 0 || inputEnded_) return ok();
  const auto count = input_->read({buffer_.get(), kInputBufferBytes});
  if (!count) return count.error();
  inflate_.next_in = buffer_.get();
  inflate_.avail_in = static_cast<uint32_t>(*count);
  inputEnded_ = *count == 0;
  return ok();
}

/// Skips padding up to the next member. False at the end of the input.
Result<bool> GzipSource::findNextMember() {
  for (;;) {
    if (auto status = refill(); !status) return status.error();
    if (inflate_.avail_in == 0) return false;
    if (*inflate_.next_in != 0) break;
    ++inflate_.next_in;
    --inflate_.avail_in;
  }
  if (*inflate_.next_in != kMemberFirstByte) {
    return damaged("the gzip data is followed by other bytes");
  }
  isal_inflate_reset(&inflate_);
  memberEnded_ = false;
  return true;
}

void GzipSource::step() {
  switch (isal_inflate(&inflate_)) {
    case ISAL_DECOMP_OK:
    case ISAL_END_INPUT:
      break;
    case ISAL_INCORRECT_CHECKSUM:
      failure_ = damaged("the gzip checksum does not match");
      return;
    default:
      failure_ = damaged("the gzip data is damaged");
      return;
  }
  memberEnded_ = inflate_.block_state == ISAL_BLOCK_FINISH;
}

}  // namespace

std::unique_ptr<ByteSource> decodeGzip(std::unique_ptr<ByteSource> input) {
  return std::make_unique<GzipSource>(std::move(input));
}

}  // namespace capfleet
