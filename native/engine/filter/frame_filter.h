// FilterFrame: conditions on what the capture hardware and the switches in front of it report about
// a packet, not on the packet itself.
#pragma once

#include <cstdint>
#include <vector>

#include "packet/packet_view.h"

namespace capfleet {

/// The values are those of FRAME_FIELDS in download-options.ts.
enum class FrameField : uint8_t {
  kCapturePort,
  kA7130Device,        ///< device of the last switch in the chain
  kA7130SourceDevice,  ///< of the first
  kA7130SourcePort,    ///< of the first
  kC3550SourcePort,
};

/// The field has one of the values or, with `excludes`, none of them.
struct FrameCondition {
  FrameField field;
  bool excludes;
  std::vector<uint32_t> values;
};

/// All of its conditions must be met; without any, every packet passes. Trailers are only searched
/// if a condition names them. A packet without a valid A7130 trailer has 0 in those fields; one
/// without a valid C3550 trailer has no value there, which only an exclusion accepts. Immutable, so
/// any number of threads may share one.
class FrameFilter {
 public:
  FrameFilter() = default;
  explicit FrameFilter(std::vector<FrameCondition> conditions);

  bool isEmpty() const { return conditions_.empty(); }
  /// The packet as stored: trailers are at its end.
  bool accepts(const PacketView& packet) const;

 private:
  std::vector<FrameCondition> conditions_;
  bool needsA7130_ = false;
  bool needsC3550_ = false;
};

}  // namespace capfleet
