#include "import/stream_decoder.h"

namespace capfleet {

namespace {

constexpr size_t kInputBufferBytes = size_t{256} * 1024;

}  // namespace

Result<size_t> StreamDecoder::read(std::span<uint8_t> out) {
  for (;;) {
    if (failure_) return *failure_;
    if (auto status = refill(); !status) return status.error();
    if (inputEnded_ && isComplete()) return size_t{0};

    const Progress progress = decode(in_, out);
    in_ = in_.subspan(progress.readBytes);
    const bool isStuck = progress.readBytes == 0 && progress.writtenBytes == 0;
    if (progress.damage) {
      failure_ =
          Error{Code::kBadCaptureFile, "the " + format_ + " data is damaged: " + *progress.damage};
    } else if (isStuck && !(inputEnded_ && isComplete())) {
      failure_ = Error{Code::kBadCaptureFile, "the " + format_ + " data ends early"};
    }
    if (progress.writtenBytes > 0) return progress.writtenBytes;
  }
}

Status StreamDecoder::refill() {
  if (!in_.empty() || inputEnded_) return ok();
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<uint8_t[]>(kInputBufferBytes);
  const auto count = input_->read({buffer_.get(), kInputBufferBytes});
  if (!count) return count.error();
  in_ = {buffer_.get(), *count};
  inputEnded_ = *count == 0;
  return ok();
}

}  // namespace capfleet
