#include <bzlib.h>

#include <algorithm>
#include <cassert>
#include <climits>

#include "import/decoders.h"
#include "import/stream_decoder.h"

namespace capfleet {

namespace {

class Bzip2Source final : public StreamDecoder {
 public:
  explicit Bzip2Source(std::unique_ptr<ByteSource> input)
      : StreamDecoder(std::move(input), "bzip2") {}
  ~Bzip2Source() override { end(); }
  Bzip2Source(const Bzip2Source&) = delete;
  Bzip2Source& operator=(const Bzip2Source&) = delete;

 protected:
  Progress decode(std::span<const uint8_t> in, std::span<uint8_t> out) override {
    if (!isOpen_) open();
    const size_t inBytes = std::min<size_t>(in.size(), INT_MAX);
    const size_t outBytes = std::min<size_t>(out.size(), INT_MAX);
    // The library does not write to its input.
    stream_.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
    stream_.avail_in = static_cast<unsigned>(inBytes);
    stream_.next_out = reinterpret_cast<char*>(out.data());
    stream_.avail_out = static_cast<unsigned>(outBytes);
    const int result = BZ2_bzDecompress(&stream_);
    Progress progress{inBytes - stream_.avail_in, outBytes - stream_.avail_out, std::nullopt};
    if (result == BZ_STREAM_END) {
      end();
    } else if (result != BZ_OK) {
      progress.damage = "its contents or checksums are wrong";
    }
    return progress;
  }
  bool isComplete() const override { return !isOpen_; }

 private:
  void open() {
    stream_ = {};
    const int result = BZ2_bzDecompressInit(&stream_, 0, 0);
    assert(result == BZ_OK);
    static_cast<void>(result);
    isOpen_ = true;
  }
  void end() {
    if (isOpen_) BZ2_bzDecompressEnd(&stream_);
    isOpen_ = false;
  }

  bz_stream stream_{};
  bool isOpen_ = false;  ///< inside a stream, of which there may be several
};

}  // namespace

std::unique_ptr<ByteSource> decodeBzip2(std::unique_ptr<ByteSource> input) {
  return std::make_unique<Bzip2Source>(std::move(input));
}

}  // namespace capfleet
