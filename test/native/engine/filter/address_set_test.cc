#include "filter/address_set.h"

#include <set>

#include "support/address_set_helper.h"
#include "support/bpf_helper.h"

namespace capfleet::test {
namespace {

constexpr uint32_t kEthernet = 1;

bool accepts(const AddressSet& set, const Bytes& packet, uint32_t linkType = kEthernet) {
  return set.accepts({packet, static_cast<uint32_t>(packet.size()), 0, linkType, 0, 0});
}

bool isIn(const MadeSet& made, const uint8_t* address, size_t bytes) {
  const Bytes value(address, address + bytes);
  if (bytes == 4) {
    const uint32_t number = loadBe32(address);
    return std::any_of(made.four.begin(), made.four.end(), [&](const auto& range) {
      return range.first <= number && number <= range.last;
    });
  }
  return std::any_of(made.six.begin(), made.six.end(), [&](const auto& range) {
    return range.first <= value && value <= range.second;
  });
}

/// Written from the rules in the header file alone.
bool oracle(const MadeSet& made, const Bytes& frame) {
  size_t at = 12;
  const auto typeAt = [&](size_t i) { return i + 2 <= frame.size() ? loadBe16(&frame[i]) : 0; };
  static const std::set<int> kTags = {0x8100, 0x88A8, 0x9100, 0x9200};
  for (int tags = 0; tags < 2 && kTags.contains(typeAt(at)); tags++) at += 4;
  struct Field {
    size_t at, bytes;
  };
  std::vector<Field> fields;
  if (typeAt(at) == 0x0800) fields = {{at + 14, 4}, {at + 18, 4}};
  if (typeAt(at) == 0x0806 || typeAt(at) == 0x8035) fields = {{at + 16, 4}, {at + 26, 4}};
  if (typeAt(at) == 0x86DD) fields = {{at + 10, 16}, {at + 26, 16}};
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
    return field.at + field.bytes <= frame.size() && isIn(made, &frame[field.at], field.bytes);
  });
}

TEST(AddressSet, AcceptsWhatBearsOneOfItsAddresses) {
  auto random = seededRandom();
  uint64_t accepted = 0;
  for (int i = 0; i < turns(2000); i++) {
    const MadeSet made = randomSet(random);
    const auto set = addressSet(made);
    for (int j = 0; j < 50; j++) {
      const Bytes frame = addressedFrame(random);
      const bool isAccepted = accepts(*set, frame);
      ASSERT_EQ(isAccepted, oracle(made, frame)) << "set " << i << ", frame " << j;
      accepted += isAccepted ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, static_cast<uint64_t>(turns(500)));
}

TEST(AddressSet, AcceptsTheSameAsHostOfLibpcap) {
  auto random = seededRandom();
  for (uint32_t address = 0; address < kAddressCount; address++) {
    const Bytes four = ipv4Address(address);
    const Bytes six = ipv6Address(address);
    const auto set = addressSet({{{loadBe32(four.data()), loadBe32(four.data())}}, {{six, six}}});
    const auto program = compiled("host " + ipv4Text(address) + " or host " + ipv6Text(address));
    for (int i = 0; i < turns(2000); i++) {
      const Bytes frame = addressedFrame(random);
      const bool isTagged = frame.size() >= 14 && isVlanTag(loadBe16(&frame[12]));
      if (isTagged) continue;
      ASSERT_EQ(accepts(*set, frame),
                libpcapAccepts(program, frame, static_cast<uint32_t>(frame.size())));
    }
  }
}

TEST(AddressSet, SievesExcludeNoPacketThatItAccepts) {
  auto random = seededRandom();
  uint64_t accepted = 0, excluded = 0;
  for (int i = 0; i < turns(1500); i++) {
    const auto set = addressSet(randomSet(random));
    if (!set->needs().isUsefulForSieves()) continue;
    for (int j = 0; j < 40; j++) {
      const Bytes frame = addressedFrame(random);
      std::set<std::pair<AddressPart, uint32_t>> words;
      forEachAddressWord(frame, [&](AddressWord word) { words.insert({word.part, word.value}); });
      const bool mayPass = set->needs().mayMatch([&](AddressWord word) {
        return words.contains({word.part, word.value});
      });
      if (accepts(*set, frame)) {
        accepted++;
        ASSERT_TRUE(mayPass) << "set " << i << ", frame " << j;
      }
      excluded += mayPass ? 0 : 1;
    }
  }
  EXPECT_GT(accepted, static_cast<uint64_t>(turns(50)));
  EXPECT_GT(excluded, static_cast<uint64_t>(turns(500)));
}

TEST(AddressSet, WithLargeNetworksIsNotForSieves) {
  const Bytes first = ipv6Address(0);
  Bytes last = first;
  last[8] = 1;
  EXPECT_FALSE(addressSet({{}, {{first, last}}})->needs().isUsefulForSieves());
  EXPECT_FALSE(addressSet({{{0x0a000000, 0x0affffff}}, {}})->needs().isUsefulForSieves());
  EXPECT_TRUE(
      addressSet({{{0x0a000000, 0x0a0000ff}}, {{first, first}}})->needs().isUsefulForSieves());
}

TEST(AddressSet, HoldsBothEndsOfTheAddressSpace) {
  const auto all = addressSet({{{0, 0xffffffff}}, {{Bytes(16), Bytes(16, 0xff)}}});
  const auto ends = addressSet({{{0, 0}, {0xffffffff, 0xffffffff}}, {}});
  for (const uint32_t address : {0u, 0xffffffffu}) {
    EXPECT_TRUE(accepts(*all, ipv4Frame(address, address)));
    EXPECT_TRUE(accepts(*ends, ipv4Frame(address, 1)));
    EXPECT_TRUE(accepts(*ends, ipv4Frame(1, address)));
  }
  EXPECT_FALSE(accepts(*ends, ipv4Frame(1, 0xfffffffe)));
}

Bytes joined(const Bytes& first, const Bytes& second) {
  Bytes all = first;
  append(all, second);
  return all;
}

TEST(AddressSet, KnowsCookedAndRawPackets) {
  const auto set = addressSet({{{0x0a000001, 0x0a000001}}, {{ipv6Address(1), ipv6Address(1)}}});
  Bytes four(20);
  four[0] = 0x45;
  four[12] = 10;
  four[15] = 1;
  Bytes six(40);
  six[0] = 0x60;
  std::copy_n(ipv6Address(1).begin(), 16, six.begin() + 24);
  for (const bool isSix : {false, true}) {
    const Bytes& packet = isSix ? six : four;
    Bytes type = isSix ? Bytes{0x86, 0xdd} : Bytes{8, 0};
    EXPECT_TRUE(accepts(*set, packet, 12));
    EXPECT_TRUE(accepts(*set, packet, 101));
    EXPECT_TRUE(accepts(*set, packet, isSix ? 229 : 228));
    EXPECT_TRUE(accepts(*set, joined(joined(Bytes(14), type), packet), 113));
    EXPECT_TRUE(accepts(*set, joined(joined(type, Bytes(18)), packet), 276));
    const Bytes tagged = joined(Bytes{0x81, 0, 0, 5}, joined(type, packet));
    EXPECT_TRUE(accepts(*set, joined(Bytes(14), tagged), 113));
    EXPECT_TRUE(accepts(*set, joined(Bytes(12), packet.empty() ? packet : joined(type, packet))));
    EXPECT_FALSE(accepts(*set, packet, 105)) << "802.11";
  }
  EXPECT_FALSE(accepts(*set, {}, 101));
}

TEST(AddressSet, RefusesMalformedRanges) {
  for (const Bytes& bytes : {Bytes{}, Bytes(4), Bytes{1, 0, 0, 0}, Bytes{0, 0, 0, 0, 1},
                             Bytes{1, 0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0}, Bytes(4 + 31)}) {
    EXPECT_FALSE(AddressSet::parse(bytes));
  }
  Bytes reversed(4 + 32);
  reversed[4] = 1;
  EXPECT_FALSE(AddressSet::parse(reversed));
}

}  // namespace
}  // namespace capfleet::test
