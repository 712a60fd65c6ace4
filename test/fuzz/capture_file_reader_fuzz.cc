// Property: over any bytes a CaptureFileReader ends, returns only bytes of the input from inside
// the record it just passed, and behaves the same however the input is cut into pieces.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "import/capture_file_reader.h"
#include "packet/pcap_format.h"

namespace {

using capfleet::CaptureFileReader;
using capfleet::CaptureRecord;
using capfleet::InputStream;
using capfleet::ReadStep;

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

void require(bool holds) {
  if (!holds) std::abort();
}

/// The results of one run over the input.
struct Outcome {
  uint64_t steps = 0;
  uint64_t joinedFiles = 0;
  uint64_t capturedBytes = 0;
  uint64_t lastOffset = 0;
  uint64_t damageOffset = 0;
  bool operator==(const Outcome&) const = default;
};

void checkPacket(const CaptureRecord& record, std::span<const uint8_t> passed) {
  require(record.captured.size() <= capfleet::kMaxCapturedLength);
  require(record.timestampNs >= 0 && record.timestampNs < capfleet::kTimestampEndNs);
  require(record.interfaceIndex < CaptureFileReader::kMaxInterfaces);
  const auto found = std::search(passed.begin(), passed.end(),  //
                                 record.captured.begin(), record.captured.end());
  require(record.captured.empty() || found != passed.end());
}

Outcome run(std::span<const uint8_t> bytes, size_t pieceBytes) {
  Outcome outcome;
  InputStream stream(std::make_unique<PieceSource>(bytes, pieceBytes), false,
                     CaptureFileReader::kMinBufferBytes);
  auto reader = CaptureFileReader::open(std::move(stream));
  if (!reader) return outcome;
  CaptureRecord record;
  for (;;) {
    if ((*reader)->isAtJoinedFile()) {
      ++outcome.joinedFiles;
      reader = CaptureFileReader::openJoined(std::move(*reader));
      if (!reader) return outcome;
    }
    const uint64_t before = (*reader)->stream().offset();
    const ReadStep step = (*reader)->next(record);
    const uint64_t after = (*reader)->stream().offset();
    require(after <= bytes.size());
    ++outcome.steps;
    if (step == ReadStep::kPacket) {
      checkPacket(record, bytes.subspan(before, after - before));
      outcome.capturedBytes += record.captured.size();
    }
    if (step == ReadStep::kDamage) outcome.damageOffset = (*reader)->damage().offset + 1;
    if (step == ReadStep::kDamage || step == ReadStep::kEnd) {
      require(step != ReadStep::kEnd || after == bytes.size());
      outcome.lastOffset = after;
      return outcome;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  require(run(bytes, SIZE_MAX) == run(bytes, 13));
  return 0;
}
