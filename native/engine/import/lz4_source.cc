#include <lz4frame.h>

#include <cassert>

#include "import/decoders.h"
#include "import/stream_decoder.h"

namespace capfleet {

namespace {

struct FreeContext {
  void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
};

LZ4F_dctx* newContext() {
  LZ4F_dctx* context = nullptr;
  const size_t result = LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
  assert(!LZ4F_isError(result));
  static_cast<void>(result);
  return context;
}

class Lz4Source final : public StreamDecoder {
 public:
  explicit Lz4Source(std::unique_ptr<ByteSource> input) : StreamDecoder(std::move(input), "lz4") {}

 protected:
  Progress decode(std::span<const uint8_t> in, std::span<uint8_t> out) override {
    size_t readBytes = in.size();
    size_t writtenBytes = out.size();
    const size_t hint =
        LZ4F_decompress(context_.get(), out.data(), &writtenBytes, in.data(), &readBytes, nullptr);
    if (LZ4F_isError(hint)) return {readBytes, writtenBytes, LZ4F_getErrorName(hint)};
    frameEnded_ = hint == 0;
    return {readBytes, writtenBytes, std::nullopt};
  }
  bool isComplete() const override { return frameEnded_; }

 private:
  std::unique_ptr<LZ4F_dctx, FreeContext> context_{newContext()};
  bool frameEnded_ = true;
};

}  // namespace

std::unique_ptr<ByteSource> decodeLz4(std::unique_ptr<ByteSource> input) {
  return std::make_unique<Lz4Source>(std::move(input));
}

}  // namespace capfleet
