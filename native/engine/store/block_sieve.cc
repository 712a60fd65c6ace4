#include "store/block_sieve.h"

#include <array>
#include <bit>
#include <cstring>

#include "os/byte_order.h"
#include "packet/pcap_format.h"
#include "store/block_checksum.h"

namespace capfleet {
namespace {

constexpr size_t kHeaderBytes = 16;
constexpr size_t kMinBitBytes = 8;
constexpr size_t kMaxBitBytes = 2048;
static_assert(kMaxStoredSieveBytes == kHeaderBytes + kMaxBitBytes);
/// A sieve is halved as long as at most this share of its bits is set: with three of ten bits set,
/// four bits give less than one percent false matches.
constexpr size_t kFullTenths = 3;

/// The bits of a block, at first as many as possible.
class SieveBits {
 public:
  void set(AddressWord word) {
    uint64_t hash = sieveHash(word);
    for (int probe = 0; probe < 4; probe++, hash >>= 16) {
      const size_t bit = hash & (kMaxBitBytes * 8 - 1);
      words_[bit / 64] |= uint64_t{1} << bit % 64;
    }
  }

  /// Halves the sieve while it stays sparse enough. The result is at the front.
  std::span<const uint8_t> fold() {
    size_t count = words_.size();
    while (count * sizeof(uint64_t) > kMinBitBytes && isSparse(count / 2)) {
      count /= 2;
      for (size_t i = 0; i < count; i++) words_[i] |= words_[i + count];
    }
    return {reinterpret_cast<const uint8_t*>(words_.data()), count * sizeof(uint64_t)};
  }

 private:
  /// Whether this many words hold the bits of twice as many.
  bool isSparse(size_t count) const {
    size_t bits = 0;
    for (size_t i = 0; i < count; i++) {
      bits += static_cast<size_t>(std::popcount(words_[i] | words_[i + count]));
    }
    return bits * 10 <= count * 64 * kFullTenths;
  }

  std::array<uint64_t, kMaxBitBytes / sizeof(uint64_t)> words_{};
};

}  // namespace

void appendSieve(std::vector<uint8_t>& out, uint32_t number, std::span<const uint8_t> block,
                 const BlockEntry& entry, AddressCollector* collector) {
  SieveBits sieve;
  for (size_t at = 0; at < block.size();) {
    const uint32_t captured = loadRecordHeader(&block[at]).capturedLength;
    forEachAddressWord(block.subspan(at + kRecordHeaderBytes, captured), [&](AddressWord word) {
      sieve.set(word);
      if (collector) collector->add(word);
    });
    if (collector) collector->endFrame();
    at += size_t{kRecordHeaderBytes} + captured;
  }
  const std::span<const uint8_t> bits = sieve.fold();
  const size_t begin = out.size();
  out.resize(begin + kHeaderBytes + bits.size());
  uint8_t* const to = out.data() + begin;
  storeLe32(to + 8, number);
  storeLe32(to + 12, static_cast<uint32_t>(bits.size()));
  std::memcpy(to + kHeaderBytes, bits.data(), bits.size());
  storeLe64(to, blockChecksum({to + 8, kHeaderBytes - 8 + bits.size()}, entry.checksum));
}

std::optional<SieveHeader> parseSieveHeader(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  const size_t bitBytes = loadLe32(&bytes[12]);
  if (!std::has_single_bit(bitBytes)) return std::nullopt;
  if (bitBytes < kMinBitBytes || bitBytes > kMaxBitBytes) return std::nullopt;
  if (bytes.size() < kHeaderBytes + bitBytes) return std::nullopt;
  return SieveHeader{loadLe32(&bytes[8]), kHeaderBytes + bitBytes};
}

bool isSieveOf(std::span<const uint8_t> sieve, uint64_t blockChecksum) {
  return loadLe64(sieve.data()) == capfleet::blockChecksum(sieve.subspan(8), blockChecksum);
}

std::optional<StoredSieve> parseSieve(std::span<const uint8_t> bytes,
                                      std::span<const BlockEntry> blocks) {
  const auto header = parseSieveHeader(bytes);
  if (!header || header->number >= blocks.size()) return std::nullopt;
  const std::span<const uint8_t> sieve = bytes.first(header->bytes);
  const auto written = blocks[header->number].asWritten();
  // For a damaged block about which nothing else is known it stays, to prove the block once it is
  // read.
  if (written && !isSieveOf(sieve, written->checksum)) return std::nullopt;
  return StoredSieve{header->number, header->bytes, BlockSieve(sieve.subspan(kHeaderBytes))};
}

}  // namespace capfleet
