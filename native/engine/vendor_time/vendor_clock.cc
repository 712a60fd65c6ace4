#include "vendor_time/vendor_clock.h"

#include "packet/pcap_format.h"
#include "vendor_time/a7130_trailer.h"
#include "vendor_time/a7280_time.h"
#include "vendor_time/c3550_trailer.h"

namespace capfleet {

namespace {

/// The clock of a stream, created with its first packet.
template <typename Clock>
Clock& clockOf(std::vector<Clock>& clocks, uint32_t stream) {
  if (stream >= clocks.size()) clocks.resize(size_t{stream} + 1);
  return clocks[stream];
}

}  // namespace

int64_t VendorClock::lookBackNs(TimeSource source) {
  switch (source) {
    case TimeSource::kA7150Overwrite:
    case TimeSource::kA7150Insert:
      return A7150Clock::kMaxKeyFrameAgeNs;
    case TimeSource::kErspan3:
      return kWholeCapture;
    case TimeSource::kNic:
    case TimeSource::kA7130:
    case TimeSource::kA7280Eth64:
    case TimeSource::kA7280Mac48:
    case TimeSource::kC3550:
      break;
  }
  return 0;
}

std::optional<int64_t> VendorClock::timeOf(const PacketView& packet) {
  const auto timeNs = read(packet);
  if (!timeNs || *timeNs < 0 || *timeNs >= kTimestampEndNs) return std::nullopt;
  return timeNs;
}

std::optional<int64_t> VendorClock::read(const PacketView& packet) {
  switch (options_.source) {
    case TimeSource::kNic:
      return std::nullopt;
    case TimeSource::kA7130: {
      const auto trailer = readA7130Trailer(packet);
      return trailer ? std::optional(trailer->timeNs) : std::nullopt;
    }
    case TimeSource::kC3550: {
      const auto trailer = readC3550Trailer(packet);
      return trailer ? std::optional(trailer->timeNs) : std::nullopt;
    }
    case TimeSource::kA7150Overwrite:
      return clockOf(a7150_, packet.stream).timeOf(packet, A7150Clock::Mode::kOverwrite);
    case TimeSource::kA7150Insert:
      return clockOf(a7150_, packet.stream).timeOf(packet, A7150Clock::Mode::kInsert);
    case TimeSource::kA7280Eth64:
      return readA7280HeaderTime(packet);
    case TimeSource::kA7280Mac48:
      return readA7280MacTime(packet, options_.mac48LimitNs);
    case TimeSource::kErspan3:
      return clockOf(erspan_, packet.stream).timeOf(packet);
  }
  return std::nullopt;
}

}  // namespace capfleet
