#include "merge/duplicate_window.h"

#include <algorithm>

#include "merge/record_hash.h"
#include "os/byte_order.h"
#include "packet/ethernet_payload.h"
#include "packet/pcap_format.h"

namespace capfleet {

namespace {

constexpr size_t kEthernetBytes = 14;
constexpr size_t kVlanTagBytes = 4;

}  // namespace

DuplicateWindow::DuplicateWindow(int64_t spanNs, uint32_t linkTypeWord)
    : spanNs_(spanNs),
      isEthernet_(linkTypeOf(linkTypeWord) == kLinkTypeEthernet),
      seen_(kRemembered),
      newest_(kRemembered) {}

bool DuplicateWindow::hasSeen(const Packet& packet) {
  hash_ = hashBytes(payloadOf(packet.record), 0);
  const uint64_t oldest = added_ < kRemembered ? 1 : added_ - kRemembered + 1;
  for (uint64_t number = newest_[hash_ % kRemembered]; number >= oldest;) {
    const Seen& seen = seen_[number % kRemembered];
    if (packet.key - seen.key > spanNs_) return false;
    if (seen.hash == hash_ && seen.bytes == packet.record.size() && seen.input != packet.input) {
      return true;
    }
    number = seen.before;
  }
  return false;
}

void DuplicateWindow::add(const Packet& packet) {
  const auto bytes = static_cast<uint32_t>(packet.record.size());
  uint64_t& newest = newest_[hash_ % kRemembered];
  // A packet that one input repeats is in its chain once: the newest is remembered longest, and if
  // all of them were in the chain, it would be walked to its end every time.
  const Seen& last = seen_[newest % kRemembered];
  const bool isAgain =
      newest != 0 && last.hash == hash_ && last.bytes == bytes && last.input == packet.input;
  added_++;
  seen_[added_ % kRemembered] = {packet.key, hash_, bytes, packet.input,
                                 isAgain ? last.before : newest};
  newest = added_;
}

std::span<const uint8_t> DuplicateWindow::payloadOf(std::span<const uint8_t> record) const {
  const auto captured = record.subspan(kRecordHeaderBytes);
  if (!isEthernet_) return captured;
  size_t payload = kEthernetBytes;
  while (payload <= captured.size() && isVlanTag(loadBe16(captured.data() + payload - 2))) {
    payload += kVlanTagBytes;
  }
  return captured.subspan(std::min(payload, captured.size()));
}

}  // namespace capfleet
