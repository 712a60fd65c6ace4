// Decides which packets a scan delivers.
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

  /// Must have succeeded before the first accepts(). Fails with kBadRegex when there is no memory
  /// to search with.
  Status prepare();
  /// FrameFilter, BPF and regular expression, in this order.
  bool accepts(const PacketView& packet);

 private:
  bool acceptsByBpf(const PacketView& packet);

  const PacketTransform& transform_;
  DecapScratch decap_;
  std::optional<RegexScratch> regex_;
};

}  // namespace capfleet
