// Property: over any bytes the decoders of zstd, xz, lz4 and bzip2 end or fail, write only into
// their buffer, and decode the same, or fail, however the input is cut into pieces.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "import/decoders.h"

namespace {

class PieceSource final : public capfleet::ByteSource {
 public:
  PieceSource(std::span<const uint8_t> bytes, size_t pieceBytes)
      : bytes_(bytes), pieceBytes_(pieceBytes) {}
  capfleet::Result<size_t> read(std::span<uint8_t> out) override {
    const size_t count = std::min({out.size(), pieceBytes_, bytes_.size()});
    std::copy_n(bytes_.begin(), count, out.begin());
    bytes_ = bytes_.subspan(count);
    return count;
  }
  uint64_t inputBytes() const override { return 0; }

 private:
  std::span<const uint8_t> bytes_;
  size_t pieceBytes_;
};

/// What is decoded, up to a limit that is small enough to be fast; nullopt after a failure.
std::optional<std::vector<uint8_t>> decode(decltype(&capfleet::decodeXz) decoder,
                                           std::span<const uint8_t> bytes, size_t pieceBytes) {
  constexpr size_t kMaxOutputBytes = size_t{1} << 20;
  const auto source = decoder(std::make_unique<PieceSource>(bytes, pieceBytes));
  std::vector<uint8_t> out(kMaxOutputBytes);
  size_t total = 0;
  while (total < out.size()) {
    const auto count = source->read(std::span(out).subspan(total));
    if (!count) return std::nullopt;
    if (*count == 0) break;
    total += *count;
  }
  out.resize(total);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr decltype(&capfleet::decodeXz) kDecoders[] = {
      capfleet::decodeZstd, capfleet::decodeXz, capfleet::decodeLz4, capfleet::decodeBzip2};
  const auto decoder = kDecoders[data[0] % std::size(kDecoders)];
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  if (decode(decoder, bytes, SIZE_MAX) != decode(decoder, bytes, 13)) std::abort();
  return 0;
}
