// A packet in the bytes of a download: a PCAP record, or a pcapng block without options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "packet/pcap_format.h"
#include "packet/pcapng_block.h"

namespace capfleet {

struct OutputForm {
  bool isPcapng = false;
  /// The fractions of PCAP records are microseconds; pcapng always counts nanoseconds.
  bool isMicroseconds = false;
};

struct OutputRecord {
  size_t bytes;  ///< with header, padding and trailer
  int64_t timestampNs;
  std::span<const uint8_t> captured;
};

/// Reads the record or block at `p`, which is whole.
inline OutputRecord loadOutputRecord(const uint8_t* p, OutputForm form) {
  if (form.isPcapng) {
    const PacketBlock block = loadPacketBlock(p);
    return {packetBlockBytes(block.capturedLength),
            block.timestampNs,
            {p + kPacketBlockHeaderBytes, block.capturedLength}};
  }
  const int64_t fraction = loadLe32(p + 4);
  const uint32_t captured = loadLe32(p + 8);
  return {
      size_t{kRecordHeaderBytes} + captured,
      int64_t{loadLe32(p)} * kNanosPerSecond + (form.isMicroseconds ? fraction * 1000 : fraction),
      {p + kRecordHeaderBytes, captured}};
}

}  // namespace capfleet
