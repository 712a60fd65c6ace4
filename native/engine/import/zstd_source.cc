#include "import/zstd_source.h"

#include <zstd.h>

#include <cassert>
#include <optional>

namespace capfleet {

namespace {

constexpr size_t kInputBufferBytes = 256 * 1024;
constexpr int kMaxWindowLog = 27;  // what `zstd --ultra` and `--long` make by default

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

struct ZstdSource::State {
  std::unique_ptr<ByteSource> input;
  std::unique_ptr<uint8_t[]> buffer = std::make_unique_for_overwrite<uint8_t[]>(kInputBufferBytes);
  std::unique_ptr<ZSTD_DCtx, FreeContext> context{ZSTD_createDCtx()};
  ZSTD_inBuffer in{nullptr, 0, 0};
  bool inputEnded = false;
  bool frameEnded = true;
  std::optional<Error> failure;  ///< for the next read(), after what was decoded

  Status refill();
};

Status ZstdSource::State::refill() {
  if (in.pos < in.size || inputEnded) return ok();
  const auto count = input->read({buffer.get(), kInputBufferBytes});
  if (!count) return count.error();
  in = {buffer.get(), *count, 0};
  inputEnded = *count == 0;
  return ok();
}

ZstdSource::ZstdSource(std::unique_ptr<ByteSource> input) : state_(std::make_unique<State>()) {
  state_->input = std::move(input);
  assert(state_->context != nullptr);
  ZSTD_DCtx_setParameter(state_->context.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
}

ZstdSource::~ZstdSource() = default;

Result<size_t> ZstdSource::read(std::span<uint8_t> out) {
  State& state = *state_;
  for (;;) {
    if (state.failure) return *state.failure;
    if (auto status = state.refill(); !status) return status.error();
    if (state.inputEnded && state.frameEnded) return size_t{0};

    ZSTD_outBuffer piece{out.data(), out.size(), 0};
    const size_t hint = ZSTD_decompressStream(state.context.get(), &piece, &state.in);
    if (ZSTD_isError(hint)) {
      state.failure = Error{Code::kBadCaptureFile,
                            std::string("the zstd data is damaged: ") + ZSTD_getErrorName(hint)};
    } else {
      state.frameEnded = hint == 0;
    }
    if (piece.pos > 0) return piece.pos;
    if (state.inputEnded && !state.frameEnded && !state.failure) {
      state.failure = Error{Code::kBadCaptureFile, "the zstd data ends early"};
    }
  }
}

uint64_t ZstdSource::inputBytes() const { return state_->input->inputBytes(); }

}  // namespace capfleet
