#include "import/input_stream.h"

#include <cassert>
#include <cstring>

#include "import/decoders.h"
#include "os/byte_order.h"
#include "os/file.h"
#include "os/file_source.h"

namespace capfleet {

namespace {

constexpr uint16_t kGzipMagic = 0x8B1F;
constexpr uint32_t kZstdMagic = 0xFD2FB528;
/// pzstd starts its files with a skippable frame: 0x184D2A50 to 0x184D2A5F.
constexpr uint32_t kSkippableMagic = 0x184D2A50;
constexpr uint32_t kSkippableMask = 0xFFFFFFF0;
/// Decompressed size allowed for any file: the start of a capture says little about the rest of it.
constexpr uint64_t kUncheckedBytes = uint64_t{64} << 20;

}  // namespace

Result<InputStream> InputStream::open(const std::string& path, size_t bufferBytes,
                                      uint32_t maxRatio) {
  auto file = File::openNamed(path);
  if (!file) return Error{Code::kBadCaptureFile, file.error().message};
  if (const auto size = file->size(); !size) {
    return Error{Code::kBadCaptureFile, size.error().message};
  }
  uint8_t magic[4] = {};
  if (const auto count = file->readAt(0, magic); !count) {
    return Error{Code::kBadCaptureFile, count.error().message};
  }
  auto source = std::make_unique<FileSource>(std::move(*file));
  if (loadLe16(magic) == kGzipMagic) {
    return InputStream(decodeGzip(std::move(source)), true, bufferBytes, maxRatio);
  }
  const uint32_t word = loadLe32(magic);
  if (word == kZstdMagic || (word & kSkippableMask) == kSkippableMagic) {
    return InputStream(decodeZstd(std::move(source)), true, bufferBytes, maxRatio);
  }
  return InputStream(std::move(source), false, bufferBytes);
}

InputStream::InputStream(std::unique_ptr<ByteSource> source, bool isCompressed, size_t bufferBytes,
                         uint32_t maxRatio)
    : source_(std::move(source)),
      isCompressed_(isCompressed),
      bufferBytes_(bufferBytes),
      maxRatio_(maxRatio),
      buffer_(std::make_unique_for_overwrite<uint8_t[]>(bufferBytes)) {}

void InputStream::fill(size_t bytes) {
  assert(bytes <= bufferBytes_);
  if (ended_) return;
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  while (end_ < bytes) {
    const auto count = source_->read({buffer_.get() + end_, bufferBytes_ - end_});
    if (!count) failure_ = count.error();
    if (!count || *count == 0) {
      ended_ = true;
      return;
    }
    end_ += *count;
    checkRatio();
    if (ended_) return;
  }
}

void InputStream::checkRatio() {
  const uint64_t bytes = offset_ + end_ - begin_;
  if (!isCompressed_ || bytes <= kUncheckedBytes || bytes / maxRatio_ <= inputBytes()) return;
  isBomb_ = true;
  ended_ = true;
  failure_ = Error{Code::kBadCaptureFile, "it grows to more than " + std::to_string(maxRatio_) +
                                              " times its size when decompressed: its first " +
                                              std::to_string(inputBytes()) + " bytes became " +
                                              std::to_string(bytes)};
}

}  // namespace capfleet
