// Runs a CaptureFileReader over bytes in memory and records every step.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "import/capture_file_reader.h"
#include "os/byte_source.h"
#include "support/temp_directory.h"

namespace capfleet::test {

/// Delivers its bytes in pieces of at most `pieceBytes`.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(Bytes bytes, size_t pieceBytes = SIZE_MAX)
      : bytes_(std::move(bytes)), pieceBytes_(pieceBytes) {}
  Result<size_t> read(std::span<uint8_t> out) override {
    const size_t count = std::min({out.size(), pieceBytes_, bytes_.size() - offset_});
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset_), count, out.begin());
    offset_ += count;
    return count;
  }
  uint64_t inputBytes() const override { return offset_; }

 private:
  Bytes bytes_;
  size_t pieceBytes_;
  size_t offset_ = 0;
};

struct ReadPacket {
  uint32_t interfaceIndex;
  int64_t timestampNs;
  uint32_t originalLength;
  Bytes captured;
  bool operator==(const ReadPacket&) const = default;
};

struct ReadSteps {
  std::string openError;  ///< empty if the file was opened
  std::vector<ReadPacket> packets;
  std::vector<std::pair<uint32_t, uint32_t>> interfaces;  ///< index, link type word
  uint64_t outOfTimeRange = 0;
  std::optional<ReadDamage> damage;
  size_t joinedFiles = 0;  ///< after the first
};

inline ReadSteps readSteps(std::unique_ptr<ByteSource> source, size_t bufferBytes = 1 << 20) {
  ReadSteps steps;
  auto reader = CaptureFileReader::open(InputStream(std::move(source), false, bufferBytes));
  if (!reader) {
    EXPECT_EQ(reader.error().code, Code::kBadCaptureFile);
    steps.openError = reader.error().message;
    return steps;
  }
  CaptureRecord record;
  for (;;) {
    if ((*reader)->isAtJoinedFile()) {
      ++steps.joinedFiles;
      reader = CaptureFileReader::openJoined(std::move(*reader));
      if (!reader) {
        steps.openError = reader.error().message;
        return steps;
      }
    }
    switch ((*reader)->next(record)) {
      case ReadStep::kPacket:
        steps.packets.push_back({record.interfaceIndex, record.timestampNs, record.originalLength,
                                 Bytes(record.captured.begin(), record.captured.end())});
        break;
      case ReadStep::kInterface:
        steps.interfaces.emplace_back(record.interfaceIndex, record.linkTypeWord);
        break;
      case ReadStep::kOutOfTimeRange:
        ++steps.outOfTimeRange;
        break;
      case ReadStep::kDamage:
        steps.damage = (*reader)->damage();
        return steps;
      case ReadStep::kEnd:
        return steps;
    }
  }
}

inline ReadSteps readSteps(const Bytes& bytes, size_t pieceBytes = SIZE_MAX) {
  return readSteps(std::make_unique<MemorySource>(bytes, pieceBytes));
}

}  // namespace capfleet::test
