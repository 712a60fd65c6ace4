#include "packet/pcap_format.h"

namespace capfleet {

void storePcapFileHeader(uint8_t* out, const PcapFileHeader& header, bool nanoseconds) {
  storeLe32(out, nanoseconds ? kPcapMagicNanos : kPcapMagicMicros);
  storeLe16(out + 4, 2);  // version 2.4
  storeLe16(out + 6, 4);
  storeLe32(out + 8, 0);   // reserved (once the zone offset)
  storeLe32(out + 12, 0);  // reserved (once the accuracy)
  storeLe32(out + 16, header.snaplen);
  storeLe32(out + 20, header.linkTypeWord);
}

}  // namespace capfleet
