// The time that a switch wrote into a packet (TSMode), or nullopt if the packet has no valid one.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "packet/packet_view.h"
#include "vendor_time/a7150_time.h"
#include "vendor_time/erspan_time.h"

namespace capfleet {

/// Where the timestamps of a download come from.
enum class TimeSource {
  kNic,             ///< nic: the stored timestamp
  kA7130,           ///< vendorA7130: trailer of 16 bytes or more
  kA7150Overwrite,  ///< vendorA7150_overwrite: tick counter in place of the FCS
  kA7150Insert,     ///< vendorA7150_insert: tick counter in front of the FCS
  kA7280Eth64,      ///< vendorA7280_eth64: header after the MAC addresses
  kA7280Mac48,      ///< vendorA7280_mac48: source MAC address
  kErspan3,         ///< vendorB_erspan3: ERSPAN type III header
  kC3550,           ///< vendorB3550: trailer of 16 bytes
};

struct VendorClockOptions {
  TimeSource source = TimeSource::kNic;
  /// A source MAC address further than this from the NIC time is a real address.
  int64_t mac48LimitNs = 60'000'000'000;
};

/// Not thread-safe; use one for each sequential scan. Every packet of each stream must be passed,
/// before any filter, in the order of NIC time, then of position; streams may interleave in any
/// way.
///
/// The time of a packet is then the same for every range, provided that the scan of each stream
/// began lookBackNs() before the packet's NIC time or with the capture's first packet.
class VendorClock {
 public:
  explicit VendorClock(const VendorClockOptions& options) : options_(options) {}

  /// lookBackNs() of a source whose state depends on all packets since the first of the capture.
  static constexpr int64_t kWholeCapture = std::numeric_limits<int64_t>::max();
  /// How far before the range, in NIC time, packets must be passed; 0: the source has no state.
  static int64_t lookBackNs(TimeSource source);

  /// The vendor's time in nanoseconds since 1970, which a PCAP record can represent; nullopt: the
  /// packet keeps its NIC time. Always nullopt for kNic and for link types other than Ethernet.
  std::optional<int64_t> timeOf(const PacketView& packet);

 private:
  std::optional<int64_t> read(const PacketView& packet);

  VendorClockOptions options_;
  std::vector<A7150Clock> a7150_;  ///< one for each stream
  std::vector<ErspanClock> erspan_;
};

}  // namespace capfleet
