#include "store/block_sieve.h"

#include <gtest/gtest.h>

#include "store/xxh3.h"
#include "support/addressed_packets.h"

namespace capfleet::test {
namespace {

struct MadeSieve {
  BlockEntry entry;
  Bytes bytes;
};

MadeSieve sieveOf(const Bytes& block) {
  MadeSieve made;
  made.entry.checksum = xxh3(block);
  appendSieve(made.bytes, 0, block, made.entry);
  return made;
}

TEST(BlockSieve, HasTheBitsOfTheExampleInTheFormat) {
  EXPECT_EQ(sieveHash({AddressPart::kIpv4, 0x0a000001}),
            17380 + (21044ull << 16) + (54142ull << 32) + (43787ull << 48));
}

TEST(BlockSieve, HoldsEveryAddressWordOfItsBlock) {
  auto random = seededRandom();
  for (int round = 0; round < 200; round++) {
    Bytes block;
    std::vector<AddressWord> words;
    for (size_t i = randomBelow(random, round % 10 == 0 ? 2000 : 60); i > 0; i--) {
      const Bytes frame = random() % 2 == 0 ? addressedFrame(random)
                                            : ipv4Frame(static_cast<uint32_t>(random()),
                                                        static_cast<uint32_t>(random()));
      forEachAddressWord(frame, [&](AddressWord word) { words.push_back(word); });
      appendRecord(block, frame);
    }
    const MadeSieve made = sieveOf(block);
    ASSERT_LE(made.bytes.size(), kMaxStoredSieveBytes);
    const auto stored = parseSieve(made.bytes, {&made.entry, 1});
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->bytes, made.bytes.size());
    for (const AddressWord word : words) ASSERT_TRUE(stored->sieve.mayHold(word));
  }
}

TEST(BlockSieve, LetsFewOtherAddressesPassAndTakesNoMoreRoomThanItNeeds) {
  auto random = seededRandom();
  struct Case {
    int packets;
    size_t mostBytes;
  };
  for (const Case c : {Case{0, 24}, Case{1, 24}, Case{10, 80}, Case{100, 528}, Case{500, 2064}}) {
    Bytes block;
    for (int i = 0; i < c.packets; i++) {
      appendRecord(block,
                   ipv4Frame(static_cast<uint32_t>(random()), static_cast<uint32_t>(random())));
    }
    const MadeSieve made = sieveOf(block);
    EXPECT_LE(made.bytes.size(), c.mostBytes) << c.packets;
    const auto stored = parseSieve(made.bytes, {&made.entry, 1});
    ASSERT_TRUE(stored);
    int passed = 0;
    for (int i = 0; i < 10'000; i++) {
      const AddressWord word{AddressPart::kIpv4, static_cast<uint32_t>(random())};
      passed += stored->sieve.mayHold(word) ? 1 : 0;
    }
    EXPECT_LT(passed, 250) << c.packets;
  }
}

TEST(BlockSieve, IsNotTakenWhenAByteOfItIsWrongOrItsBlockIsAnother) {
  Bytes block;
  appendRecord(block, ipv4Frame(1, 2));
  const MadeSieve made = sieveOf(block);
  ASSERT_TRUE(parseSieve(made.bytes, {&made.entry, 1}));
  for (size_t i = 0; i < made.bytes.size(); i++) {
    Bytes damaged = made.bytes;
    damaged[i] ^= 0x40;
    EXPECT_FALSE(parseSieve(damaged, {&made.entry, 1})) << i;
    EXPECT_FALSE(parseSieve({made.bytes.data(), i}, {&made.entry, 1})) << i;
  }
  BlockEntry other = made.entry;
  other.checksum++;
  EXPECT_FALSE(parseSieve(made.bytes, {&other, 1}));
  EXPECT_FALSE(parseSieve(made.bytes, {}));
}

}  // namespace
}  // namespace capfleet::test
