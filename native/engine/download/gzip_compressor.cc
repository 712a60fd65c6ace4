#include "download/gzip_compressor.h"

#include <isa-l/igzip_lib.h>
#include <libdeflate.h>

#include <cassert>
#include <vector>

namespace capfleet {
namespace {

constexpr size_t kOutputBytes = kSlabBytes + kSlabHeadroomBytes;

Error outOfMemory() { return {Code::kStoreUnavailable, "not enough memory to compress"}; }

/// Always at ISA-L's level 2, whose output is as small as that of `gzip -1`. That of level 1 is
/// larger for some traffic, and it is hardly faster; level 3 is larger for some, and not worth its
/// time.
class IsalCompressor final : public SlabCompressor {
 public:
  Status compress(std::span<const SlabPtr> raw, std::span<const SlabPtr> out,
                  const std::atomic<bool>&) override {
    assert(raw.size() == 1 && out.size() == 1);
    isal_zstream stream;
    isal_deflate_stateless_init(&stream);
    stream.level = 2;
    stream.level_buf = levelBuffer_.data();
    stream.level_buf_size = static_cast<uint32_t>(levelBuffer_.size());
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = raw[0]->bytes.get();
    stream.avail_in = static_cast<uint32_t>(raw[0]->size);
    stream.next_out = out[0]->bytes.get();
    stream.avail_out = static_cast<uint32_t>(kOutputBytes);
    const int result = isal_deflate_stateless(&stream);
    assert(result == COMP_OK);  // the output always fits
    out[0]->size = stream.total_out;
    return ok();
  }

 private:
  std::vector<uint8_t> levelBuffer_ = std::vector<uint8_t>(ISAL_DEF_LVL2_DEFAULT);
};

class DeflateCompressor final : public SlabCompressor {
 public:
  explicit DeflateCompressor(int level) : compressor_(libdeflate_alloc_compressor(level)) {}

  Status compress(std::span<const SlabPtr> raw, std::span<const SlabPtr> out,
                  const std::atomic<bool>&) override {
    assert(raw.size() == 1 && out.size() == 1);
    if (!compressor_) return outOfMemory();
    out[0]->size = libdeflate_gzip_compress(compressor_.get(), raw[0]->bytes.get(), raw[0]->size,
                                            out[0]->bytes.get(), kOutputBytes);
    assert(out[0]->size > 0);  // the output always fits
    return ok();
  }

 private:
  struct Free {
    void operator()(libdeflate_compressor* compressor) const {
      libdeflate_free_compressor(compressor);
    }
  };
  const std::unique_ptr<libdeflate_compressor, Free> compressor_;
};

}  // namespace

std::unique_ptr<SlabCompressor> makeGzipCompressor(int level) {
  assert(level >= 1 && level <= 9);
  if (level == 1) return std::make_unique<IsalCompressor>();
  return std::make_unique<DeflateCompressor>(level);
}

}  // namespace capfleet
