// Finds a trailer at the end of a frame, before the FCS if that was captured.
#pragma once

#include <optional>

#include "vendor_time/frame_check_sequence.h"

namespace capfleet {

/// `read` gets the frame without FCS and returns an optional trailer. The result depends only on
/// this packet. If the file header does not state the FCS and both layouts yield a valid trailer,
/// which happens by chance in about one frame in thousands, the FCS itself decides.
template <typename Read>
auto findTrailer(const PacketView& packet, Read read) -> decltype(read(packet.captured)) {
  if (!isWholeEthernetFrame(packet)) return std::nullopt;
  const auto frame = packet.captured;
  if (const auto declared = declaredFcsBytes(packet.linkTypeWord)) {
    if (frame.size() < *declared) return std::nullopt;
    return read(frame.first(frame.size() - *declared));
  }
  const auto withoutFcs = read(frame);
  if (frame.size() < kFcsBytes) return withoutFcs;
  const auto withFcs = read(frame.first(frame.size() - kFcsBytes));
  if (!withFcs) return withoutFcs;
  if (!withoutFcs || endsInCorrectFcs(frame)) return withFcs;
  return withoutFcs;
}

}  // namespace capfleet
