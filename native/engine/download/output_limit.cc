#include "download/output_limit.h"

namespace capfleet {

bool OutputLimit::cut(PacketBatch& batch) {
  Slab& slab = *batch.slab;
  if (fits(batch.packets, slab.size)) {
    packets_ += batch.packets;
    bytes_ += slab.size;
    return false;
  }
  uint64_t packets = 0;
  size_t end = 0;
  for (;;) {
    // The batch as a whole did not fit, so a record that does not fit is found before its end.
    const OutputRecord record = loadOutputRecord(slab.bytes.get() + end, form_);
    if (!fits(packets + 1, end + record.bytes)) {
      nextNs_ = record.timestampNs;
      break;
    }
    batch.lastNs = record.timestampNs;
    packets++;
    end += record.bytes;
  }
  batch.packets = packets;
  slab.size = end;
  return true;
}

void OutputLimit::skip(uint64_t packets, uint64_t bytes) {
  packets_ += packets;
  bytes_ += bytes;
}

bool OutputLimit::fits(uint64_t packets, uint64_t bytes) const {
  if (limits_.packets && packets_ + packets > *limits_.packets) return false;
  return !limits_.bytes || bytes_ + bytes <= *limits_.bytes;
}

}  // namespace capfleet
