#include "store/address_collector.h"

#include <gtest/gtest.h>

#include "store/address_key.h"
#include "support/addressed_packets.h"

namespace capfleet::test {
namespace {

bool holds(const std::vector<uint64_t>& lines, uint64_t key) {
  const uint64_t* const line = &lines[lineOf(key) * kLineWords % lines.size()];
  bool all = true;
  forEachBitOf(key, [&](uint32_t bit) { all &= (line[bit / 64] >> bit % 64 & 1) != 0; });
  return all;
}

std::vector<uint64_t> linesOf(const Bytes& block, uint64_t segmentBytes) {
  AddressCollector collector;
  collector.addBlock(block);
  auto lines = collector.takeLines(segmentBytes);
  EXPECT_FALSE(lines.empty());
  return lines;
}

/// The keys of the words of a frame, and of the networks and addresses that it has completely.
std::vector<uint64_t> keysOf(const Bytes& frame) {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> six;
  forEachAddressWord(frame, [&](AddressWord word) {
    keys.push_back(addressKey(word));
    if (word.part == AddressPart::kIpv4) {
      keys.push_back(addressKey({AddressPart::kIpv4Net24, word.value & 0xFFFFFF00}));
      keys.push_back(addressKey({AddressPart::kIpv4Net16, word.value & 0xFFFF0000}));
      return;
    }
    six.push_back(word.value);
    if (six.size() % 4 != 0) return;
    const uint32_t* const words = &six[six.size() - 4];
    const uint64_t high = uint64_t{words[0]} << 32 | words[1];
    const uint64_t low = uint64_t{words[2]} << 32 | words[3];
    keys.push_back(ipv6Key(AddressPart::kIpv6Whole, high, low));
    keys.push_back(ipv6Key(AddressPart::kIpv6Net64, high, 0));
    keys.push_back(ipv6Key(AddressPart::kIpv6Net48, high, 0));
  });
  return keys;
}

TEST(AddressCollector, SetsTheBitsOfTheExampleInTheFormat) {
  const uint64_t key = addressKey({AddressPart::kIpv4, 0x0a000001});
  EXPECT_EQ(key, 0xB5B34BADA1A290F9);
  EXPECT_EQ(lineOf(key), 190526650u);
  std::vector<uint32_t> bits;
  forEachBitOf(key, [&](uint32_t bit) { bits.push_back(bit); });
  EXPECT_EQ(bits, (std::vector<uint32_t>{249, 328, 104, 436}));
}

TEST(AddressCollector, HoldsEveryWordNetworkAndAddressOfItsFrames) {
  auto random = seededRandom();
  for (int round = 0; round < turns(60, 20); round++) {
    Bytes block;
    std::vector<uint64_t> keys;
    for (size_t i = randomBelow(random, 80); i > 0; i--) {
      const Bytes frame = random() % 2 == 0 ? addressedFrame(random)
                                            : ipv4Frame(static_cast<uint32_t>(random()),
                                                        static_cast<uint32_t>(random()));
      for (const uint64_t key : keysOf(frame)) keys.push_back(key);
      appendRecord(block, frame);
    }
    const std::vector<uint64_t> lines = linesOf(block, uint64_t{1} << 20);
    for (const uint64_t key : keys) ASSERT_TRUE(holds(lines, key)) << "round " << round;
  }
}

TEST(AddressCollector, TakesLittleRoomAndMatchesFewOtherAddresses) {
  auto random = seededRandom();
  for (const int packets : {0, 10, 1000, 20'000}) {
    Bytes block;
    for (int i = 0; i < packets; i++) {
      appendRecord(block, ipv4Frame(static_cast<uint32_t>(random()), 0xC0000201));
    }
    const std::vector<uint64_t> lines = linesOf(block, uint64_t{1} << 30);
    EXPECT_LE(lines.size() * 64, 512u + static_cast<size_t>(packets) * 3 * 26) << packets;
    int matched = 0;
    for (int i = 0; i < 10'000; i++) {
      const auto address = static_cast<uint32_t>(random());
      matched += holds(lines, addressKey({AddressPart::kIpv4, address})) ? 1 : 0;
    }
    EXPECT_LT(matched, 200) << packets;
  }
}

TEST(AddressCollector, SaysNothingOfASegmentWithTooManyAddressesForItsSize) {
  auto random = seededRandom();
  AddressCollector collector;
  for (int i = 0; i < 10'000; i++) {
    collector.add({AddressPart::kIpv4, static_cast<uint32_t>(random())});
  }
  EXPECT_TRUE(collector.takeLines(1 << 20).empty());
}

TEST(AddressCollector, TakesNoMoreThanAThousandthOfALargeSegment) {
  auto random = seededRandom();
  for (const uint64_t bytes : {uint64_t{1} << 20, uint64_t{1} << 26, uint64_t{1} << 30}) {
    AddressCollector collector;
    const uint64_t addresses = bytes / 1024 / 20;
    for (uint64_t i = 0; i < addresses; i++) {
      collector.add({AddressPart::kIpv4, static_cast<uint32_t>(random())});
    }
    EXPECT_LE(collector.takeLines(bytes).size() * 8, bytes / 1024);
  }
}

}  // namespace
}  // namespace capfleet::test
