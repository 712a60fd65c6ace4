#include <zstd.h>

#include <cassert>

#include "import/decoders.h"
#include "import/stream_decoder.h"

namespace capfleet {

namespace {

constexpr int kMaxWindowLog = 27;  // what `zstd --ultra` and `--long` make by default

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class ZstdSource final : public StreamDecoder {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> input) : StreamDecoder(std::move(input), "zstd") {
    assert(context_ != nullptr);
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

 protected:
  Progress decode(std::span<const uint8_t> in, std::span<uint8_t> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const size_t hint = ZSTD_decompressStream(context_.get(), &to, &from);
    if (ZSTD_isError(hint)) return {from.pos, to.pos, ZSTD_getErrorName(hint)};
    frameEnded_ = hint == 0;
    return {from.pos, to.pos, std::nullopt};
  }
  bool isComplete() const override { return frameEnded_; }

 private:
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_{ZSTD_createDCtx()};
  bool frameEnded_ = true;
};

}  // namespace

std::unique_ptr<ByteSource> decodeZstd(std::unique_ptr<ByteSource> input) {
  return std::make_unique<ZstdSource>(std::move(input));
}

}  // namespace capfleet
