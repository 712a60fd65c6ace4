#include "filter/packet_filter.h"

#include <cassert>

namespace capfleet {

Status PacketFilter::prepare() {
  if (transform_.regex == nullptr || regex_) return ok();
  Result<RegexScratch> scratch = transform_.regex->makeScratch();
  if (!scratch) return scratch.error();
  regex_ = std::move(*scratch);
  return ok();
}

bool PacketFilter::acceptsInnermost(const PacketView& packet) {
  const FilterView seen = decapsulate(packet, decap_);
  return transform_.bpf->accepts(seen.captured.data(), static_cast<uint32_t>(seen.captured.size()),
                                 seen.originalLength);
}

bool PacketFilter::matchesRegex(const PacketView& packet) {
  assert(regex_);
  return transform_.regex->matches(packet.captured, *regex_);
}

std::optional<size_t> PacketFilter::firstCandidateByte(std::span<const uint8_t> records) {
  assert(regex_);
  const std::optional<size_t> end = transform_.regex->firstMatchEnd(records, *regex_);
  if (!end) return std::nullopt;
  return *end - 1;
}

}  // namespace capfleet
