#include "merge/held_packets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "os/byte_order.h"
#include "packet/pcapng_block.h"

namespace capfleet {
namespace {

constexpr uint16_t kCommentOption = 1;
constexpr size_t kOptionHeaderBytes = 4;
/// Memory of larger packets is not kept, or some would hold much that is not used.
constexpr size_t kMostSpareBytes = 2048;
constexpr size_t kMostSpare = 1024;

size_t optionBytes(const std::string& text) {
  return kOptionHeaderBytes + blockPadded(static_cast<uint32_t>(text.size()));
}

bool hasOptions(const uint8_t* block) {
  return blockBytes(block) > packetBlockBytes(loadPacketBlock(block).capturedLength);
}

}  // namespace

uint8_t* HeldPackets::add(int64_t key, size_t announcedBytes, size_t blockBytes) {
  Held& added = held_.emplace_back(Held{key, announcedBytes, {}, {}});
  if (!spare_.empty()) {
    added.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  added.bytes.resize(announcedBytes + blockBytes);
  heldBytes_ += added.bytes.size();
  return added.bytes.data();
}

void HeldPackets::leaveOut(uint64_t packet, const MergedInterfaces::Interface& from,
                           size_t blockBytes) {
  if (packet <= taken_) return;
  Held& held = held_[packet - taken_ - 1];
  held.leftOutBytes += blockBytes;
  const auto known = std::ranges::find(held.copies, &from, &Copies::from);
  if (known != held.copies.end()) {
    known->packets++;
  } else {
    held.copies.push_back({&from, 1});
    heldBytes_ += sizeof(Copies);
  }
}

bool HeldPackets::isDue(int64_t key) const {
  if (held_.empty()) return false;
  const bool isPassed = held_.front().key < key && key - held_.front().key > spanNs_;
  return isPassed || heldBytes_ > kMostBytes;
}

HeldPackets::Front HeldPackets::front(size_t mostAdded) {
  const Held& held = held_.front();
  added_.clear();
  if (held.copies.empty()) return {held.bytes.size(), 0};
  const bool isWithoutOptions = !hasOptions(held.bytes.data() + held.announcedBytes);
  const size_t endBytes = isWithoutOptions ? kEndOfOptionsBytes : 0;
  // A file never gets longer by leaving copies out.
  const size_t most = std::min({mostAdded, held.leftOutBytes, kMostCommentBytes});
  for (const bool isNamed : {true, false}) {
    const std::string text = textOf(held.copies, isNamed);
    if (optionBytes(text) + endBytes > most) continue;
    added_.resize(optionBytes(text));
    storeLe16(added_.data(), kCommentOption);
    storeLe16(added_.data() + 2, static_cast<uint16_t>(text.size()));
    std::memcpy(added_.data() + kOptionHeaderBytes, text.data(), text.size());
    return {held.bytes.size() + added_.size() + endBytes, added_.size() + endBytes};
  }
  return {held.bytes.size(), 0};
}

void HeldPackets::take(uint8_t* to) {
  Held& held = held_.front();
  uint8_t* const block = to + held.announcedBytes;
  if (added_.empty()) {
    std::memcpy(to, held.bytes.data(), held.bytes.size());
  } else {
    const bool isWithoutOptions = !hasOptions(held.bytes.data() + held.announcedBytes);
    const size_t kept =
        held.bytes.size() - kBlockTrailerBytes - (isWithoutOptions ? 0 : kEndOfOptionsBytes);
    std::memcpy(to, held.bytes.data(), kept);
    std::memcpy(to + kept, added_.data(), added_.size());
    uint8_t* const end = to + kept + added_.size() + kEndOfOptionsBytes;
    storeLe32(end - kEndOfOptionsBytes, 0);
    const auto bytes = static_cast<uint32_t>(end + kBlockTrailerBytes - block);
    storeLe32(block + 4, bytes);
    storeLe32(end, bytes);
  }
  heldBytes_ -= held.bytes.size();
  heldBytes_ -= held.copies.size() * sizeof(Copies);
  if (held.bytes.capacity() <= kMostSpareBytes && spare_.size() < kMostSpare) {
    spare_.push_back(std::move(held.bytes));
  }
  held_.pop_front();
  taken_++;
}

/// For example "capfleet copies: 2 lon1:cap0, 1 nyc1:cap1", or only the number of all.
std::string HeldPackets::textOf(const std::vector<Copies>& copies, bool isNamed) {
  std::string text = "capfleet copies: ";
  uint64_t all = 0;
  for (const Copies& one : copies) {
    all += one.packets;
    if (!isNamed) continue;
    if (&one != &copies.front()) text += ", ";
    text += std::to_string(one.packets) + ' ' + one.from->name;
    if (text.size() > kMostCommentBytes) return text;
  }
  return isNamed ? text : text + std::to_string(all);
}

}  // namespace capfleet
