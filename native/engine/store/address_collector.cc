#include "store/address_collector.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

#include "packet/pcap_format.h"
#include "store/address_key.h"

namespace capfleet {
namespace {

constexpr uint32_t kFewestLines = 4;
/// Bytes of packets per byte of their lines, at least.
constexpr uint64_t kMostShare = 1024;
/// As in sieves: lines are halved as long as at most this share of their bits is set.
constexpr size_t kFullTenths = 3;
/// With more bits set than this, a segment is hardly ever ruled out.
constexpr size_t kUselessTenths = 5;

/// The most lines that a segment of this size may have: a power of two.
uint32_t mostLines(uint64_t segmentBytes) {
  const uint64_t lines = segmentBytes / kMostShare / (kLineWords * 8);
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(std::bit_floor(lines), kFewestLines, kMostLines));
}

}  // namespace

void AddressCollector::Free::operator()(uint64_t* p) const { std::free(p); }

/// Zeroed by the kernel when touched: a short segment touches little.
AddressCollector::AddressCollector()
    : words_(static_cast<uint64_t*>(std::calloc(kMostLines * kLineWords, sizeof(uint64_t)))) {
  if (!words_) throw std::bad_alloc();
}

void AddressCollector::set(uint64_t key) {
  const size_t first = size_t{lineOf(key) % kMostLines} * kLineWords;
  isTouched(first) = true;
  uint64_t* const line = words_.get() + first;
  forEachBitOf(key, [&](uint32_t bit) { line[bit / 64] |= uint64_t{1} << bit % 64; });
}

void AddressCollector::addIpv4(uint32_t address) {
  set(addressKey({AddressPart::kIpv4, address}));
  const uint32_t net24 = address & 0xFFFFFF00;
  if (recentNets24_.isNew(net24)) set(addressKey({AddressPart::kIpv4Net24, net24}));
  const uint32_t net16 = address & 0xFFFF0000;
  if (recentNets16_.isNew(net16)) set(addressKey({AddressPart::kIpv4Net16, net16}));
}

void AddressCollector::addIpv6() {
  const uint64_t high = uint64_t{pending_[0]} << 32 | pending_[1];
  const uint64_t low = uint64_t{pending_[2]} << 32 | pending_[3];
  Ipv6& recent = recent6_[(high ^ low) * 0x9E3779B97F4A7C15 >> 54];
  if (recent.high == high && recent.low == low && (high | low) != 0) {
    pendingWords_ = 0;
    return;
  }
  recent = {high, low};
  addPending();
  for (const AddressPart part :
       {AddressPart::kIpv6Net48, AddressPart::kIpv6Net64, AddressPart::kIpv6Whole}) {
    set(ipv6Key(part, high, low));
  }
}

/// Adds each of the words on its own; an address that was cut off has only some.
void AddressCollector::addPending() {
  for (size_t i = 0; i < pendingWords_; i++) {
    const auto part = static_cast<AddressPart>(static_cast<size_t>(AddressPart::kIpv6First) + i);
    set(addressKey({part, pending_[i]}));
  }
  pendingWords_ = 0;
}

void AddressCollector::addBlock(std::span<const uint8_t> block) {
  for (size_t at = 0; at < block.size();) {
    const uint32_t captured = loadRecordHeader(&block[at]).capturedLength;
    forEachAddressWord(block.subspan(at + kRecordHeaderBytes, captured),
                       [&](AddressWord word) { add(word); });
    endFrame();
    at += size_t{kRecordHeaderBytes} + captured;
  }
}

std::vector<uint64_t> AddressCollector::takeLines(uint64_t segmentBytes) {
  uint32_t lines = kMostLines;
  const auto countBits = [&](uint32_t count) {
    // Of `count` lines that hold the bits of twice as many, or of all lines as they are.
    const size_t words = size_t{count} * kLineWords;
    const bool isHalf = count < lines;
    size_t bits = 0;
    for (size_t begin = 0; begin < words; begin += kPartWords) {
      if (!isTouched(begin) && !(isHalf && isTouched(begin + words))) continue;
      for (size_t i = begin; i < std::min(begin + kPartWords, words); i++) {
        const uint64_t other = isHalf ? words_[i + words] : 0;
        bits += static_cast<size_t>(std::popcount(words_[i] | other));
      }
    }
    return bits;
  };
  const uint32_t most = mostLines(segmentBytes);
  while (lines > 1) {
    const uint32_t half = lines / 2;
    if (lines <= most && countBits(half) * 10 > size_t{half} * kLineBits * kFullTenths) break;
    const size_t words = size_t{half} * kLineWords;
    for (size_t begin = 0; begin < words; begin += kPartWords) {
      if (!isTouched(begin + words)) continue;
      for (size_t i = begin; i < std::min(begin + kPartWords, words); i++) {
        words_[i] |= words_[i + words];
      }
      isTouched(begin) = true;
    }
    lines = half;
  }
  if (countBits(lines) * 10 > size_t{lines} * kLineBits * kUselessTenths) return {};
  return {words_.get(), words_.get() + size_t{lines} * kLineWords};
}

}  // namespace capfleet
