#include <zstd.h>

#include <cassert>
#include <optional>

#include "import/decoders.h"

namespace capfleet {

namespace {

constexpr size_t kInputBufferBytes = 256 * 1024;
constexpr int kMaxWindowLog = 27;  // what `zstd --ultra` and `--long` make by default

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> input) : input_(std::move(input)) {
    assert(context_ != nullptr);
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  Result<size_t> read(std::span<uint8_t> out) override;
  uint64_t inputBytes() const override { return input_->inputBytes(); }

 private:
  Status refill();

  std::unique_ptr<ByteSource> input_;
  std::unique_ptr<uint8_t[]> buffer_ = std::make_unique_for_overwrite<uint8_t[]>(kInputBufferBytes);
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_{ZSTD_createDCtx()};
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool inputEnded_ = false;
  bool frameEnded_ = true;
  std::optional<Error> failure_;  ///< for the next read(), after what was decoded
};

Result<size_t> ZstdSource::read(std::span<uint8_t> out) {
  for (;;) {
    if (failure_) return *failure_;
    if (auto status = refill(); !status) return status.error();
    if (inputEnded_ && frameEnded_) return size_t{0};

    ZSTD_outBuffer piece{out.data(), out.size(), 0};
    const size_t hint = ZSTD_decompressStream(context_.get(), &piece, &in_);
    if (ZSTD_isError(hint)) {
      failure_ = Error{Code::kBadCaptureFile,
                       std::string("the zstd data is damaged: ") + ZSTD_getErrorName(hint)};
    } else {
      frameEnded_ = hint == 0;
    }
    if (piece.pos > 0) return piece.pos;
    if (inputEnded_ && !frameEnded_ && !failure_) {
      failure_ = Error{Code::kBadCaptureFile, "the zstd data ends early"};
    }
  }
}

Status ZstdSource::refill() {
  if (in_.pos < in_.size || inputEnded_) return ok();
  const auto count = input_->read({buffer_.get(), kInputBufferBytes});
  if (!count) return count.error();
  in_ = {buffer_.get(), *count, 0};
  inputEnded_ = *count == 0;
  return ok();
}

}  // namespace

std::unique_ptr<ByteSource> decodeZstd(std::unique_ptr<ByteSource> input) {
  return std::make_unique<ZstdSource>(std::move(input));
}

}  // namespace capfleet
