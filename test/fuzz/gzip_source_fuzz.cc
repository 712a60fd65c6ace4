// Property: over any bytes the gzip decoder ends or fails, and writes only into its buffer.
#include <algorithm>
#include <memory>
#include <vector>

#include "import/decoders.h"

namespace {

class SpanSource final : public capfleet::ByteSource {
 public:
  explicit SpanSource(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  capfleet::Result<size_t> read(std::span<uint8_t> out) override {
    const size_t count = std::min(out.size(), bytes_.size());
    std::copy_n(bytes_.begin(), count, out.begin());
    bytes_ = bytes_.subspan(count);
    return count;
  }
  uint64_t inputBytes() const override { return 0; }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Enough for several turns of the decoder's window, and small enough to be fast.
  constexpr size_t kMaxOutputBytes = size_t{1} << 20;
  const auto source = capfleet::decodeGzip(std::make_unique<SpanSource>(std::span(data, size)));
  std::vector<uint8_t> out(64 * 1024);
  for (size_t total = 0; total < kMaxOutputBytes;) {
    const auto count = source->read(out);
    if (!count || *count == 0) break;
    total += *count;
  }
  return 0;
}
