// What happens to each packet between store and output.
#pragma once

#include <memory>

#include "filter/address_set.h"
#include "filter/bpf_filter.h"
#include "filter/decapsulation.h"
#include "filter/frame_filter.h"
#include "filter/regex_matcher.h"
#include "packet/pcap_format.h"
#include "packet/pcapng_interfaces.h"
#include "vendor_time/vendor_clock.h"

namespace capfleet {

/// Packets must match all filters; each sees the packet as stored, whatever the output changes.
/// Immutable, so any number of threads may share one.
struct PacketTransform {
  FrameFilter frameFilter;
  std::shared_ptr<const AddressSet> addresses;  ///< null: every packet passes
  std::shared_ptr<const BpfFilter> bpf;         ///< null: every packet passes
  bool bpfSeesInnermost = false;                ///< the frame inside of tunnels and tags
  std::shared_ptr<const RegexMatcher> regex;    ///< null: every packet passes
  VendorClockOptions clock;
  HeaderKinds stripped = 0;                  ///< left out of returned packets, before sliceBytes
  uint32_t sliceBytes = kMaxCapturedLength;  ///< captured bytes kept of each packet
  bool toMicroseconds = false;
  /// Packets become pcapng blocks of these interfaces; null: PCAP records.
  std::shared_ptr<const PcapngInterfaces> pcapng;

  bool filters() const {
    return !frameFilter.isEmpty() || addresses != nullptr || bpf != nullptr || regex != nullptr;
  }
  /// Whether returned records differ from stored ones in more than their time.
  bool changesRecords() const { return changesPackets() || toMicroseconds || pcapng != nullptr; }
  /// Whether returned packets have fewer bytes than stored ones.
  bool changesPackets() const { return sliceBytes < kMaxCapturedLength || stripped != 0; }
  /// Whether timestamps are rewritten, for which a scan must see every packet in order.
  bool hasVendorTime() const { return clock.source != TimeSource::kNic; }
  /// Whether every packet is returned, by its stored time and with the length of its stored record.
  bool keepsSizes() const {
    return !filters() && !changesPackets() && !hasVendorTime() && pcapng == nullptr;
  }
  bool keepsEverything() const { return !filters() && !changesRecords() && !hasVendorTime(); }
  /// Room that every batch leaves free.
  size_t reservedBytes() const { return pcapng == nullptr ? 0 : pcapng->reservedBytes(); }
};

}  // namespace capfleet
