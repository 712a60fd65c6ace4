// Property: over any sequence of packets every clock reads only their bytes and gives a time that a
// PCAP record can carry, or none; where it has no state, the time depends on the packet alone;
// where it has, on the packets of the same stream that came before.
#include <algorithm>
#include <vector>

#include "fuzz_input.h"
#include "packet/pcap_format.h"
#include "vendor_time/vendor_clock.h"

namespace {

using capfleet::PacketView;
using capfleet::TimeSource;
using capfleet::VendorClock;
using capfleet::fuzz::FuzzInput;
using capfleet::fuzz::require;

constexpr TimeSource kSources[] = {
    TimeSource::kNic,         TimeSource::kA7130,      TimeSource::kA7150Overwrite,
    TimeSource::kA7150Insert, TimeSource::kA7280Eth64, TimeSource::kA7280Mac48,
    TimeSource::kErspan3,     TimeSource::kC3550,
};

struct Packet {
  std::vector<uint8_t> bytes;  // in its own heap block, so that the sanitizer sees each end
  PacketView view;
};

int64_t clampToPcap(int64_t ns) { return ns < 0 ? 0 : std::min(ns, capfleet::kTimestampEndNs - 1); }

/// Each packet: stream and link type (1), bytes cut off (1), NIC time since the one before in
/// signed microseconds (4), captured length (2), bytes.
std::vector<Packet> packetsOf(FuzzInput input) {
  constexpr uint32_t kLinkTypeWords[] = {1, 0x24000001, 0x04000001, 113, 0xF4000001, 1, 1, 1};
  constexpr size_t kMaxPackets = 200;
  int64_t nicNs = static_cast<int64_t>(input.take(4)) * capfleet::kNanosPerSecond;
  std::vector<Packet> packets;
  while (!input.rest().empty() && packets.size() < kMaxPackets) {
    const auto kind = static_cast<uint32_t>(input.take(1));
    const auto cut = static_cast<uint32_t>(input.take(1));
    nicNs = clampToPcap(nicNs + int64_t{static_cast<int32_t>(input.take(4))} * 1000);
    const auto bytes = input.takeBytes(2);
    Packet packet{{bytes.begin(), bytes.end()}, {}};
    const auto length = static_cast<uint32_t>(bytes.size()) + cut;
    packet.view = {{}, length, nicNs, kLinkTypeWords[kind >> 5], kind & 3, 0};
    packets.push_back(std::move(packet));
    packets.back().view.captured = packets.back().bytes;
  }
  return packets;
}

void check(const std::vector<Packet>& packets, TimeSource source) {
  VendorClock all({.source = source});
  VendorClock firstStream({.source = source});
  for (const Packet& packet : packets) {
    const auto timeNs = all.timeOf(packet.view);
    require(!timeNs || (*timeNs >= 0 && *timeNs < capfleet::kTimestampEndNs));
    if (source == TimeSource::kNic) require(!timeNs);
    if (VendorClock::lookBackNs(source) == 0) {
      require(VendorClock({.source = source}).timeOf(packet.view) == timeNs);
    }
    if (packet.view.stream == 0) require(firstStream.timeOf(packet.view) == timeNs);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto packets = packetsOf(FuzzInput({data, size}));
  for (const TimeSource source : kSources) check(packets, source);
  return 0;
}
