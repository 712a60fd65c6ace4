#include "filter/frame_filter.h"

#include <algorithm>
#include <optional>

#include "vendor_time/a7130_trailer.h"
#include "vendor_time/c3550_trailer.h"

namespace capfleet {
namespace {

/// The trailers of one packet.
struct Trailers {
  std::optional<A7130Trailer> a7130;
  std::optional<C3550Trailer> c3550;
};

std::optional<uint32_t> valueOf(FrameField field, const PacketView& packet,
                                const Trailers& trailers) {
  const A7130Trailer a7130 = trailers.a7130.value_or(A7130Trailer{0, 0, 0, 0});
  switch (field) {
    case FrameField::kCapturePort:
      return packet.port;
    case FrameField::kA7130Device:
      return a7130.lastHopDevice;
    case FrameField::kA7130SourceDevice:
      return a7130.firstHopDevice;
    case FrameField::kA7130SourcePort:
      return a7130.firstHopPort;
    case FrameField::kC3550SourcePort:
      if (!trailers.c3550) return std::nullopt;
      return trailers.c3550->port;
  }
  __builtin_unreachable();
}

bool holds(const FrameCondition& condition, std::optional<uint32_t> value) {
  const auto& values = condition.values;
  const bool isListed = value && std::find(values.begin(), values.end(), *value) != values.end();
  return isListed != condition.excludes;
}

bool isOfC3550(const FrameCondition& condition) {
  return condition.field == FrameField::kC3550SourcePort;
}

bool isOfA7130(const FrameCondition& condition) {
  return condition.field != FrameField::kCapturePort && !isOfC3550(condition);
}

}  // namespace

FrameFilter::FrameFilter(std::vector<FrameCondition> conditions)
    : conditions_(std::move(conditions)),
      needsA7130_(std::any_of(conditions_.begin(), conditions_.end(), isOfA7130)),
      needsC3550_(std::any_of(conditions_.begin(), conditions_.end(), isOfC3550)) {}

bool FrameFilter::accepts(const PacketView& packet) const {
  if (conditions_.empty()) return true;
  Trailers trailers;
  if (needsA7130_) trailers.a7130 = readA7130Trailer(packet);
  if (needsC3550_) trailers.c3550 = readC3550Trailer(packet);
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const FrameCondition& condition) {
    return holds(condition, valueOf(condition.field, packet, trailers));
  });
}

}  // namespace capfleet
