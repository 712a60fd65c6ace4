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

bool PacketFilter::accepts(const PacketView& packet) {
  const FrameFilter& frameFilter = transform_.frameFilter;
  if (!frameFilter.isEmpty() && !frameFilter.accepts(packet)) return false;
  if (transform_.bpf != nullptr && !acceptsByBpf(packet)) return false;
  if (transform_.regex == nullptr) return true;
  assert(regex_);
  return transform_.regex->matches(packet.captured, *regex_);
}

bool PacketFilter::acceptsByBpf(const PacketView& packet) {
  const FilterView seen = transform_.bpfSeesInnermost
                              ? decapsulate(packet, decap_)
                              : FilterView{packet.captured, packet.originalLength};
  return transform_.bpf->accepts(seen.captured.data(), static_cast<uint32_t>(seen.captured.size()),
                                 seen.originalLength);
}

}  // namespace capfleet
