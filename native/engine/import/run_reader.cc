#include "import/run_reader.h"

#include "store/segment_path.h"

namespace capfleet {

Status RunReader::openNextSegment() {
  const std::string path =
      storedSegmentPath(run_.directory, ++openedSegments_, run_.isFlat) + ".pcap";
  auto stream = InputStream::open(path, CaptureFileReader::kMinBufferBytes);
  if (!stream) return Error{Code::kStoreUnavailable, stream.error().message};
  auto reader = CaptureFileReader::open(std::move(*stream));
  if (!reader) return Error{Code::kStoreCorrupt, path + " " + reader.error().message};
  segment_ = std::move(*reader);
  return ok();
}

Result<bool> RunReader::advance() {
  for (;;) {
    if (!segment_) {
      if (openedSegments_ == run_.segmentCount) return false;
      if (auto status = openNextSegment(); !status) return status.error();
    }
    switch (segment_->next(packet_)) {
      case ReadStep::kPacket:
        return true;
      case ReadStep::kInterface:
        break;
      case ReadStep::kEnd:
        segment_.reset();
        break;
      case ReadStep::kOutOfTimeRange:
      case ReadStep::kDamage:
        return Error{Code::kStoreCorrupt,
                     run_.directory + ": a sort run was damaged: " + segment_->damage().message};
    }
  }
}

}  // namespace capfleet
