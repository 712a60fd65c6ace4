#include <lzma.h>

#include <cassert>

#include "import/decoders.h"
#include "import/stream_decoder.h"

namespace capfleet {

namespace {

/// `xz -9` needs 65 MiB.
constexpr uint64_t kMaxMemoryBytes = uint64_t{128} << 20;

const char* describe(lzma_ret result) {
  switch (result) {
    case LZMA_MEMLIMIT_ERROR:
      return "it needs more memory than `xz -9` uses";
    case LZMA_FORMAT_ERROR:
      return "it is followed by other bytes";
    case LZMA_OPTIONS_ERROR:
      return "it uses options that are not supported";
    case LZMA_MEM_ERROR:
      return "no memory is left";
    default:
      return "its contents or checksums are wrong";
  }
}

class XzSource final : public StreamDecoder {
 public:
  explicit XzSource(std::unique_ptr<ByteSource> input) : StreamDecoder(std::move(input), "xz") {
    const lzma_ret result = lzma_stream_decoder(&stream_, kMaxMemoryBytes, LZMA_CONCATENATED);
    assert(result == LZMA_OK);
    static_cast<void>(result);
  }
  ~XzSource() override { lzma_end(&stream_); }
  XzSource(const XzSource&) = delete;
  XzSource& operator=(const XzSource&) = delete;

 protected:
  Progress decode(std::span<const uint8_t> in, std::span<uint8_t> out) override {
    stream_.next_in = in.data();
    stream_.avail_in = in.size();
    stream_.next_out = out.data();
    stream_.avail_out = out.size();
    const lzma_ret result = lzma_code(&stream_, in.empty() ? LZMA_FINISH : LZMA_RUN);
    isComplete_ = result == LZMA_STREAM_END;
    Progress progress{in.size() - stream_.avail_in, out.size() - stream_.avail_out, std::nullopt};
    // LZMA_BUF_ERROR: nothing could be decoded, because the input has ended.
    if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR) {
      progress.damage = describe(result);
    }
    return progress;
  }
  bool isComplete() const override { return isComplete_; }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool isComplete_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> decodeXz(std::unique_ptr<ByteSource> input) {
  return std::make_unique<XzSource>(std::move(input));
}

}  // namespace capfleet
