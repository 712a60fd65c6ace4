#include "merge/record_merge.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "merge/pcapng_records.h"
#include "merge/record_copy.h"
#include "os/byte_order.h"
#include "packet/pcap_format.h"
#include "packet/pcapng_block.h"

namespace capfleet {

namespace {

constexpr uint32_t kNanosPerMicro = 1000;
/// More remarks wait for the next packet, so that an output has room for one block at least.
constexpr size_t kMostRemarkBytes = 16384;

int64_t keyOf(const RecordInput& input) {
  return input.hasRecord() ? input.key() : MergeTree::kEnded;
}

std::vector<int64_t> keysOf(const std::vector<RecordInput*>& inputs) {
  std::vector<int64_t> keys(inputs.size());
  std::ranges::transform(inputs, keys.begin(), [](const RecordInput* in) { return keyOf(*in); });
  return keys;
}

/// `add` must not be negative. The result is always below kEnded.
int64_t saturatingSum(int64_t key, int64_t add) {
  constexpr int64_t kLast = MergeTree::kEnded - 1;
  return key > kLast - add ? kLast : key + add;
}

/// Converts the fractions of complete records from nanoseconds to microseconds.
void truncateTimes(std::span<uint8_t> records) {
  while (!records.empty()) {
    uint8_t* const fraction = records.data() + 4;
    storeLe32(fraction, loadLe32(fraction) / kNanosPerMicro);
    records = records.subspan(kRecordHeaderBytes + loadLe32(records.data() + 8));
  }
}

/// A record as a block: whose, and what was captured.
struct PacketForBlock {
  uint32_t interfaceId;
  uint32_t originalLength;
  std::span<const uint8_t> captured;
};

PacketForBlock packetOf(std::span<const uint8_t> record, std::optional<uint32_t> interfaceId) {
  const uint32_t originalLength = loadLe32(record.data() + 12);
  const auto bytes = record.subspan(kRecordHeaderBytes);
  if (interfaceId) return {*interfaceId, originalLength, bytes};
  return {loadLe32(bytes.data()), originalLength, bytes.subspan(kInterfaceTagBytes)};
}

/// Bytes of the options with the remarks that are due; 0: there are none.
size_t dueRemarkBytes(const MergedInterfaces::Interface& interface, int64_t ns) {
  size_t bytes = 0;
  for (const MergedInterfaces::Remark& remark : interface.remarks) {
    if (remark.atNs > ns || bytes + remark.options.size() > kMostRemarkBytes) break;
    bytes += remark.options.size();
  }
  return bytes == 0 ? 0 : bytes + kEndOfOptionsBytes;
}

/// Writes the block, and uses up the remarks that are due, whose options have `remarkBytes`.
void writePacket(uint8_t* to, int64_t ns, const PacketForBlock& packet,
                 std::span<const uint8_t> captured, MergedInterfaces::Interface& interface,
                 size_t remarkBytes) {
  const auto length = static_cast<uint32_t>(captured.size());
  storePacketBlock(to, {interface.number.value_or(0), ns, length, packet.originalLength});
  uint8_t* const bytes = to + kPacketBlockHeaderBytes;
  if (captured.size() >= kLeastCopyBytes) [[likely]] {
    copyRecord(bytes, captured.data(), captured.size());
  } else {
    std::memcpy(bytes, captured.data(), captured.size());
  }
  if (remarkBytes == 0) return;
  uint8_t* at = to + kPacketBlockHeaderBytes + blockPadded(length);
  uint8_t* const end = at + remarkBytes;
  while (at < end - kEndOfOptionsBytes) {
    const std::vector<uint8_t>& options = interface.remarks.front().options;
    std::memcpy(at, options.data(), options.size());
    at += options.size();
    interface.remarks.pop_front();
  }
  storeLe32(at, 0);
  const auto blockBytes = static_cast<uint32_t>(end + kBlockTrailerBytes - to);
  storeLe32(to + 4, blockBytes);
  storeLe32(end, blockBytes);
}

}  // namespace

RecordMerge::RecordMerge(std::vector<RecordInput*> inputs, const RecordMergeOptions& options)
    : inputs_(std::move(inputs)),
      tree_(keysOf(inputs_)),
      isGated_(options.maxPackets || options.maxBytes || options.dedup || options.sliceBytes),
      toMicroseconds_(options.toMicroseconds),
      sliceBytes_(options.sliceBytes.value_or(std::numeric_limits<uint32_t>::max())),
      packetsLeft_(options.maxPackets.value_or(std::numeric_limits<uint64_t>::max())),
      bytesLeft_(options.maxBytes.value_or(std::numeric_limits<uint64_t>::max())),
      linkTypeWord_(options.linkTypeWord),
      pcapng_(options.pcapng),
      dropped_(inputs_.size()) {
  assert(std::ranges::all_of(inputs_, [](const RecordInput* in) { return in->unitNs() == 1; }));
  if (options.maxSpanNs && !tree_.hasEnded()) {
    stop_ = saturatingSum(tree_.winnerKey(), *options.maxSpanNs);
  }
  if (options.dedup) {
    duplicates_ = std::make_unique<DuplicateWindow>(*options.dedup);
    if (pcapng_) held_ = std::make_unique<HeldPackets>(options.dedup->spanNs);
  }
}

/// Why the winner's record cannot be output, if so.
[[gnu::always_inline]] inline std::optional<RecordMerge::State> RecordMerge::stateBefore(
    size_t room) const {
  if (tree_.winnerKey() >= stop_) return State::kEnd;
  const RecordInput& input = winner();
  if (!input.hasRecord()) return State::kDry;
  if (input.record().size() > room) return State::kReady;
  return std::nullopt;
}

/// Called after the winner's records were consumed. A dry input stays the winner until refilled().
[[gnu::always_inline]] inline void RecordMerge::rekey() {
  const RecordInput& input = winner();
  if (input.hasRecord()) tree_.replaceWinner(input.key());
}

RecordMerge::State RecordMerge::advance(std::span<uint8_t> output, size_t& written) {
  if (pcapng_) {
    const State state = advanceInBlocks(output, written);
    if (state != State::kEnd || !held_) return state;
    while (!held_->isEmpty()) {
      if (!writeHeld(output, written)) return State::kReady;
    }
    return state;
  }
  const size_t before = written;
  const State state = isGated_ ? advanceOneByOne(output, written) : advanceInRuns(output, written);
  if (toMicroseconds_) truncateTimes(output.subspan(before, written - before));
  return state;
}

void RecordMerge::refilled() { tree_.replaceWinner(keyOf(winner())); }

RecordMerge::State RecordMerge::advanceInRuns(std::span<uint8_t> output, size_t& written) {
  WinStreak streak;
  for (;;) {
    const auto state = stateBefore(output.size() - written);
    if (state) return *state;
    RecordInput& from = winner();
    if (streak.isLongWith(tree_.winner())) {
      const auto run = takeRun(output.size() - written);
      std::memcpy(output.data() + written, run.data(), run.size());
      written += run.size();
    } else {
      const auto run = from.record();
      copyRecord(output.data() + written, run.data(), run.size());
      written += run.size();
      from.take();
    }
    rekey();
  }
}

RecordMerge::State RecordMerge::advanceOneByOne(std::span<uint8_t> output, size_t& written) {
  for (;;) {
    const auto state = stateBefore(output.size() - written);
    if (state) return *state;
    RecordInput& from = winner();
    const auto record = from.record();
    const size_t bytes = writtenBytes(record);
    const auto captured = record.subspan(kRecordHeaderBytes, bytes - kRecordHeaderBytes);
    const DuplicateWindow::Packet packet{captured, linkTypeWord_, tree_.winnerKey()};
    if (originalOf(packet) != 0) {
      dropWinner();
    } else if (mayWrite(packet, bytes)) {
      std::memcpy(output.data() + written, record.data(), bytes);
      storeLe32(output.data() + written + 8, static_cast<uint32_t>(bytes - kRecordHeaderBytes));
      written += bytes;
      dropped_[tree_.winner()].bytes += record.size() - bytes;
    } else {
      nextNs_ = from.time();
      return State::kEnd;
    }
    from.take();
    rekey();
  }
}

RecordMerge::State RecordMerge::advanceInBlocks(std::span<uint8_t> output, size_t& written) {
  for (;;) {
    if (held_ && held_->isDue(tree_.winnerKey())) {
      if (!writeHeld(output, written)) return State::kReady;
      continue;
    }
    if (tree_.winnerKey() >= stop_) return State::kEnd;
    RecordInput& from = winner();
    if (!from.hasRecord()) return State::kDry;
    const PacketForBlock packet = packetOf(from.record(), pcapng_->ofInputs[tree_.winner()]);
    MergedInterfaces::Interface& interface = pcapng_->interfaces->at(packet.interfaceId);
    const auto captured =
        packet.captured.first(std::min<size_t>(packet.captured.size(), sliceBytes_));
    const int64_t ns = toMicroseconds_ ? from.time() - from.time() % kNanosPerMicro : from.time();
    const size_t announced = interface.number ? 0 : interface.description.size();
    const size_t remarks = dueRemarkBytes(interface, from.time());
    const size_t plain = packetBlockBytes(static_cast<uint32_t>(captured.size()));
    const size_t bytes = announced + remarks + plain;
    if (!held_ && bytes > output.size() - written) return State::kReady;
    const size_t closing = interface.number ? 0 : pcapng_->closingBytes;
    const DuplicateWindow::Packet judged{captured, interface.linkTypeWord, tree_.winnerKey()};
    if (const uint64_t original = originalOf(judged); original != 0) {
      held_->leaveOut(original, interface, plain);
      interface.duplicates++;
      dropWinner();
    } else if (mayWrite(judged, bytes + closing)) {
      uint8_t* to = output.data() + written;
      if (held_) {
        to = held_->add(tree_.winnerKey(), announced, bytes - announced);
      } else {
        written += bytes;
      }
      if (!interface.number) {
        std::memcpy(to, interface.description.data(), announced);
        pcapng_->interfaces->number(interface);
      }
      writePacket(to + announced, ns, packet, captured, interface, remarks);
      interface.packets++;
      dropped_[tree_.winner()].bytes += from.record().size() - kRecordHeaderBytes - captured.size();
    } else {
      nextNs_ = from.time();
      return State::kEnd;
    }
    from.take();
    rekey();
  }
}

/// Writes the oldest packet that is held; false if the output has no room for it.
bool RecordMerge::writeHeld(std::span<uint8_t> output, size_t& written) {
  const auto [bytes, added] = held_->front(bytesLeft_);
  if (bytes > output.size() - written) return false;
  held_->take(output.data() + written);
  written += bytes;
  bytesLeft_ -= added;
  return true;
}

/// The winner's record and those right after it that precede the next of any other input.
std::span<const uint8_t> RecordMerge::takeRun(size_t room) {
  RecordInput& from = winner();
  const int64_t bound = std::min(tree_.winnerStaysBelow(), stop_);
  const uint8_t* const begin = from.record().data();
  size_t bytes = 0;
  do {
    bytes += from.record().size();
    from.take();
  } while (from.hasRecord() && from.record().data() == begin + bytes && from.key() < bound &&
           bytes + from.record().size() <= room);
  return {begin, bytes};
}

size_t RecordMerge::writtenBytes(std::span<const uint8_t> record) const {
  return kRecordHeaderBytes + std::min<size_t>(record.size() - kRecordHeaderBytes, sliceBytes_);
}

/// The number of the packet, of those that were written, that this one is a copy of; 0 if it is
/// none. For a packet as it would be written: if one of two devices slices, they have the same
/// packets.
uint64_t RecordMerge::originalOf(const DuplicateWindow::Packet& packet) {
  return duplicates_ ? duplicates_->originalOf(packet) : 0;
}

/// Whether the limits have room for a packet of `bytes` in all, which then is written.
bool RecordMerge::mayWrite(const DuplicateWindow::Packet& packet, size_t bytes) {
  if (packetsLeft_ == 0 || bytes > bytesLeft_) return false;
  packetsLeft_--;
  bytesLeft_ -= bytes;
  if (duplicates_) duplicates_->add(packet);
  return true;
}

void RecordMerge::dropWinner() {
  Dropped& dropped = dropped_[tree_.winner()];
  dropped.packets++;
  dropped.bytes += winner().record().size();
}

}  // namespace capfleet
