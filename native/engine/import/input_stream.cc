#include "import/input_stream.h"

#include <array>
#include <cassert>
#include <cstring>

#include "import/decoders.h"
#include "os/file.h"
#include "os/file_source.h"

namespace capfleet {

namespace {

using Decoder = std::unique_ptr<ByteSource> (*)(std::unique_ptr<ByteSource> input);
/// A format of compressed data, recognized by the bytes with which it begins.
struct CompressedFormat {
  std::array<uint8_t, 4> magic;
  std::array<uint8_t, 4> mask;
  Decoder decoder;
};
constexpr CompressedFormat kCompressedFormats[] = {
    {{0x1F, 0x8B}, {0xFF, 0xFF}, decodeGzip},
    {{0x28, 0xB5, 0x2F, 0xFD}, {0xFF, 0xFF, 0xFF, 0xFF}, decodeZstd},
    // pzstd begins its files with a skippable frame; the lz4 program does not.
    {{0x50, 0x2A, 0x4D, 0x18}, {0xF0, 0xFF, 0xFF, 0xFF}, decodeZstd},
    {{0x04, 0x22, 0x4D, 0x18}, {0xFF, 0xFF, 0xFF, 0xFF}, decodeLz4},
    {{0xFD, '7', 'z', 'X'}, {0xFF, 0xFF, 0xFF, 0xFF}, decodeXz},
    {{'B', 'Z', 'h', 0x30}, {0xFF, 0xFF, 0xFF, 0xF0}, decodeBzip2},
};
/// Decompressed size allowed for any file: the start of a capture says little about the rest of it.
constexpr uint64_t kUncheckedBytes = uint64_t{64} << 20;

/// The decoder for data that begins with these bytes; nullptr if it is not compressed.
Decoder decoderOf(const std::array<uint8_t, 4>& start) {
  for (const auto& [magic, mask, decoder] : kCompressedFormats) {
    bool isSame = true;
    for (size_t i = 0; i < start.size(); ++i) isSame = isSame && (start[i] & mask[i]) == magic[i];
    if (isSame) return decoder;
  }
  return nullptr;
}

}  // namespace

Result<InputStream> InputStream::open(const std::string& path, size_t bufferBytes,
                                      uint32_t maxRatio) {
  auto file = File::openNamed(path);
  if (!file) return Error{Code::kBadCaptureFile, file.error().message};
  if (const auto size = file->size(); !size) {
    return Error{Code::kBadCaptureFile, size.error().message};
  }
  std::array<uint8_t, 4> start{};
  if (const auto count = file->readAt(0, start); !count) {
    return Error{Code::kBadCaptureFile, count.error().message};
  }
  auto source = std::make_unique<FileSource>(std::move(*file));
  if (const Decoder decode = decoderOf(start)) {
    return InputStream(decode(std::move(source)), true, bufferBytes, maxRatio);
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
