#include "download/zstd_compressor.h"

#include <zstd.h>

#include <algorithm>
#include <cassert>

namespace capfleet {
namespace {

/// A window of 8 MiB, which holds the largest group completely: a smaller one would be a ring, and
/// searching a ring in two pieces takes an eighth of the time. Every zstd decoder supports 8 MiB.
constexpr int kWindowLog = 23;
/// Input between two checks of the cancel flag: level 22 takes about 60 ms for this.
constexpr size_t kStepBytes = 128 * 1024;

class ZstdCompressor final : public SlabCompressor {
 public:
  explicit ZstdCompressor(int level) : context_(ZSTD_createCCtx()) {
    if (!context_) return;
    set(ZSTD_c_compressionLevel, level);
    set(ZSTD_c_windowLog, kWindowLog);
    set(ZSTD_c_checksumFlag, 1);
  }

  Status compress(std::span<const SlabPtr> raw, std::span<const SlabPtr> out,
                  const std::atomic<bool>& isCancelled) override {
    if (!context_) return outOfMemory();
    ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_only);
    size_t total = 0;
    for (const SlabPtr& slab : raw) total += slab->size;
    assert(total <= size_t{1} << kWindowLog);
    // If known beforehand, the size also limits the window, and with it the memory of both sides.
    ZSTD_CCtx_setPledgedSrcSize(context_.get(), total);
    out_ = out;
    ZSTD_outBuffer output = outputOf(0);
    for (size_t i = 0; i < raw.size(); i++) {
      for (size_t at = 0; at < raw[i]->size; at += kStepBytes) {
        if (isCancelled) return Error{Code::kCancelled, "the download was closed"};
        const size_t bytes = std::min(kStepBytes, raw[i]->size - at);
        ZSTD_inBuffer input{raw[i]->bytes.get() + at, bytes, 0};
        if (Status status = feed(input, output, ZSTD_e_continue); !status) return status;
      }
    }
    ZSTD_inBuffer nothing{nullptr, 0, 0};
    return feed(nothing, output, ZSTD_e_end);
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  static Error outOfMemory() { return {Code::kStoreUnavailable, "not enough memory to compress"}; }

  void set(ZSTD_cParameter parameter, int value) {
    const size_t result = ZSTD_CCtx_setParameter(context_.get(), parameter, value);
    assert(!ZSTD_isError(result));
  }

  ZSTD_outBuffer outputOf(size_t slab) {
    slab_ = slab;
    return {out_[slab]->bytes.get(), kSlabBytes, 0};
  }

  /// Compresses all of the input, advancing to the next slab when one is full.
  Status feed(ZSTD_inBuffer& input, ZSTD_outBuffer& output, ZSTD_EndDirective directive) {
    for (;;) {
      const size_t left = ZSTD_compressStream2(context_.get(), &output, &input, directive);
      if (ZSTD_isError(left)) return outOfMemory();  // nothing else can fail here
      out_[slab_]->size = output.pos;
      const bool isDone = directive == ZSTD_e_end ? left == 0 : input.pos == input.size;
      if (isDone) return ok();
      if (output.pos == output.size) output = outputOf(slab_ + 1);
    }
  }

  const std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::span<const SlabPtr> out_;  ///< output of the call in progress
  size_t slab_ = 0;               ///< index of the slab being filled
};

}  // namespace

std::unique_ptr<SlabCompressor> makeZstdCompressor(int level) {
  assert(level >= -5 && level <= 22 && level != 0);
  return std::make_unique<ZstdCompressor>(level);
}

}  // namespace capfleet
