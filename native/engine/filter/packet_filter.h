// Decides which packets a scan returns.
#pragma once

#include <optional>

#include "filter/decapsulation.h"
#include "filter/packet_transform.h"

namespace capfleet {

/// The filters of a transform with the working memory for one scan. Not thread-safe.
class PacketFilter {
 public:
  /// `transform` must outlive the filter.
  explicit PacketFilter(const PacketTransform& transform) : transform_(transform) {}

  /// Must have succeeded before the first accepts(). Fails with kBadRegex if there is no memory to
  /// search with.
  Status prepare();
  /// FrameFilter, addresses, BPF and regular expression, in this order.
  bool accepts(const PacketView& packet) {
    const PacketTransform& transform = transform_;
    if (!transform.frameFilter.isEmpty() && !transform.frameFilter.accepts(packet)) return false;
    if (transform.addresses != nullptr && !transform.addresses->accepts(packet)) return false;
    if (transform.bpf != nullptr && !acceptsByBpf(packet)) return false;
    return transform.regex == nullptr || matchesRegex(packet);
  }

  /// Whether firstCandidateByte() may be called: the regular expression alone decides, wherever it
  /// matches.
  bool looksThroughRecords() const {
    const PacketTransform& transform = transform_;
    return transform.regex != nullptr && transform.bpf == nullptr &&
           transform.addresses == nullptr && transform.frameFilter.isEmpty() &&
           transform.regex->matchesAnywhere();
  }
  /// An offset into `records`, which are neighbours: accepts() is false for those that end before
  /// that byte, and for all if it is nullopt. REQUIRES: as accepts(), and looksThroughRecords().
  std::optional<size_t> firstCandidateByte(std::span<const uint8_t> records);

 private:
  bool acceptsByBpf(const PacketView& packet) {
    if (transform_.bpfSeesInnermost) return acceptsInnermost(packet);
    return transform_.bpf->accepts(packet.captured.data(),
                                   static_cast<uint32_t>(packet.captured.size()),
                                   packet.originalLength);
  }
  bool acceptsInnermost(const PacketView& packet);
  bool matchesRegex(const PacketView& packet);

  const PacketTransform& transform_;
  DecapScratch decap_;
  std::optional<RegexScratch> regex_;
};

}  // namespace capfleet
