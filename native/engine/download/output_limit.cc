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
    const uint8_t* const record = slab.bytes.get() + end;
    const size_t bytes = size_t{kRecordHeaderBytes} + loadLe32(record + 8);
    if (!fits(packets + 1, end + bytes)) {
      nextNs_ = timestampOf(record);
      break;
    }
    batch.lastNs = timestampOf(record);
    packets++;
    end += bytes;
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

int64_t OutputLimit::timestampOf(const uint8_t* record) const {
  const int64_t fraction = loadLe32(record + 4);
  return int64_t{loadLe32(record)} * kNanosPerSecond +
         (toMicroseconds_ ? fraction * 1000 : fraction);
}

}  // namespace capfleet
