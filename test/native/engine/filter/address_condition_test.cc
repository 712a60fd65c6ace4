#include "filter/address_condition.h"

#include <gtest/gtest.h>

#include <set>

#include "filter/bpf_evaluator.h"
#include "support/addressed_packets.h"
#include "support/bpf_helper.h"

namespace capfleet::test {
namespace {

using Words = std::set<std::pair<AddressPart, uint32_t>>;

/// With the networks of IPv4.
Words wordsOf(const Bytes& packet) {
  Words words;
  forEachAddressWord(packet, [&](AddressWord word) {
    words.insert({word.part, word.value});
    if (word.part != AddressPart::kIpv4) return;
    words.insert({AddressPart::kIpv4Net24, word.value & 0xFFFFFF00});
    words.insert({AddressPart::kIpv4Net16, word.value & 0xFFFF0000});
  });
  return words;
}

bool mayAccept(const AddressCondition& condition, const Words& words) {
  return condition.mayAccept([&](AddressWord word) {
    return words.contains({word.part, word.value});
  });
}

AddressCondition conditionOf(const std::string& expression) {
  return AddressCondition(parsed(compiled(expression)));
}

/// A block with one packet is the strictest test: whatever a filter accepts must pass its condition
/// there.
TEST(AddressCondition, HoldsForEveryPacketThatAFilterAccepts) {
  auto random = seededRandom();
  uint64_t accepted = 0, excluded = 0;
  for (int i = 0; i < turns(1500); i++) {
    const std::string expression = addressFilter(random);
    // Some expressions contradict themselves; libpcap rejects these.
    const auto both = tryCompiled(expression, random() % 2 == 0);
    if (!both) continue;
    const AddressCondition condition(parsed(*both));
    for (int j = 0; j < 60; j++) {
      const Bytes packet = addressedFrame(random);
      const bool mayPass = mayAccept(condition, wordsOf(packet));
      if (libpcapAccepts(*both, packet, static_cast<uint32_t>(packet.size()))) {
        accepted++;
        ASSERT_TRUE(mayPass) << expression;
      }
      excluded += mayPass ? 0 : 1;
    }
  }
  EXPECT_GT(accepted, 50u) << "the filters must not all refuse";
  EXPECT_GT(excluded, 50u) << "the conditions must not all be empty";
}

/// An instruction that the condition analyses, or any other.
bpf_insn randomInstruction(std::mt19937_64& random, size_t after) {
  static const uint16_t kCodes[] = {0x20, 0x20, 0x28, 0x28, 0x15, 0x15, 0x15, 0x15, 0x15,
                                    0x30, 0x40, 0x00, 0x60, 0x02, 0x07, 0x87, 0x54, 0x05,
                                    0x25, 0x35, 0x45, 0x1d, 0x06, 0x16, 0xb1, 0x01, 0x04};
  static const uint32_t kOffsets[] = {12, 12, 12, 16, 16, 20, 22, 26, 26, 28, 30, 30, 34, 38, 42};
  static const uint32_t kValues[] = {0x0800,     0x0800,     0x86DD,     0x0806,     0x8100, 0x88A8,
                                     0x0a000000, 0x0a000001, 0x0a000002, 0x20010000, 0,      1};
  bpf_insn in{kCodes[randomBelow(random, std::size(kCodes))], 0, 0, 0};
  const bool isJump = (in.code & 7) == 5;
  in.jt = static_cast<uint8_t>(isJump ? randomBelow(random, std::min<size_t>(after, 4)) : 0);
  in.jf = static_cast<uint8_t>(isJump ? randomBelow(random, std::min<size_t>(after, 4)) : 0);
  in.k = isJump ? kValues[randomBelow(random, std::size(kValues))]
                : kOffsets[randomBelow(random, std::size(kOffsets))];
  if (in.code == 0x05) in.k = static_cast<uint32_t>(randomBelow(random, after));
  if (in.code == 0x60 || in.code == 0x02) in.k %= 16;
  return in;
}

TEST(AddressCondition, HoldsForRandomPrograms) {
  auto random = seededRandom();
  uint64_t accepted = 0, excluded = 0;
  for (int i = 0; i < turns(20000); i++) {
    std::vector<bpf_insn> insns;
    // No slot may be read before it is written.
    for (uint32_t slot = 0; slot < kBpfMemorySlots; slot++) insns.push_back({BPF_ST, 0, 0, slot});
    const size_t count = 4 + randomBelow(random, 30);
    for (size_t at = 0; at < count; at++) insns.push_back(randomInstruction(random, count - at));
    insns.push_back({BPF_RET | BPF_K, 0, 0, static_cast<uint32_t>(random() % 2)});
    const BpfProgram program = parsed(bothPrograms(insns));
    const BpfEvaluator evaluator(program);
    const AddressCondition condition(program);
    for (int j = 0; j < 8; j++) {
      const Bytes packet = addressedFrame(random);
      const auto bytes = static_cast<uint32_t>(packet.size());
      const bool mayPass = mayAccept(condition, wordsOf(packet));
      const bool isAccepted = evaluator.accepts(packet.data(), bytes, bytes);
      accepted += isAccepted ? 1 : 0;
      excluded += mayPass ? 0 : 1;
      ASSERT_TRUE(mayPass || !isAccepted);
    }
  }
  EXPECT_GT(accepted, 50u);
  EXPECT_GT(excluded, 50u);
}

TEST(AddressCondition, IsFoundWhereAnAddressIsNecessary) {
  for (const char* expression :
       {"host 10.0.0.1", "src host 10.0.0.1", "host 10.0.0.1 and port 53", "ip host 10.0.0.1",
        "arp host 10.0.0.1", "host 2001:db8::1", "ip6 net 2001:db8::/32",
        "host 10.0.0.1 or host 10.0.0.2 or host 2001:db8::1", "vlan and host 10.0.0.1",
        "host 10.0.0.1 or (vlan and host 10.0.0.1)", "vlan and vlan and src host 10.0.0.1",
        "ip[12:4] = 0x0a000001", "host 10.0.0.1 and not port 22",
        "(host 10.0.0.1 and tcp) or (host 10.0.0.2 and udp)"}) {
    EXPECT_TRUE(conditionOf(expression).isUseful()) << expression;
  }
}

TEST(AddressCondition, OfANetworkIsOfUseForTablesOnly) {
  for (const char* expression : {"net 10.1.2.0/24", "src net 10.1.0.0/16 and tcp"}) {
    EXPECT_TRUE(conditionOf(expression).isUseful()) << expression;
    EXPECT_FALSE(conditionOf(expression).isUsefulForSieves()) << expression;
  }
  EXPECT_FALSE(conditionOf("net 10.0.0.0/8").isUseful());
  EXPECT_TRUE(conditionOf("host 10.0.0.1").isUsefulForSieves());
}

TEST(AddressCondition, IsEmptyWherePacketsOfAnyAddressMayPass) {
  for (const char* expression :
       {"", "tcp port 443", "not host 10.0.0.1", "host 10.0.0.1 or port 53", "vlan", "icmp",
        "ether host 02:00:00:00:00:01", "ether[26:4] = 0x0a000001", "mpls and host 10.0.0.1",
        "vlan and vlan and vlan and host 10.0.0.1"}) {
    EXPECT_FALSE(conditionOf(expression).isUseful()) << expression;
  }
}

TEST(AddressCondition, AsksForAllAddressesThatAPacketMustBear) {
  const AddressCondition condition = conditionOf("src host 10.0.0.1 and dst host 10.0.0.2");
  const std::pair first{AddressPart::kIpv4, 0x0a000001u};
  const std::pair second{AddressPart::kIpv4, 0x0a000002u};
  EXPECT_TRUE(mayAccept(condition, {first, second}));
  EXPECT_FALSE(mayAccept(condition, {first}));
  EXPECT_FALSE(mayAccept(condition, {second}));
  const AddressCondition either = conditionOf("host 10.0.0.1 or host 10.0.0.2");
  EXPECT_TRUE(mayAccept(either, {first}));
  EXPECT_TRUE(mayAccept(either, {second}));
  EXPECT_FALSE(mayAccept(either, {{AddressPart::kIpv4, 0x0a000003u}}));
}

TEST(AddressCondition, OfAVeryLongProgramIsEmpty) {
  std::vector<bpf_insn> insns(5000, {BPF_LD | BPF_IMM, 0, 0, 1});
  insns.push_back({BPF_RET | BPF_K, 0, 0, 1});
  EXPECT_FALSE(AddressCondition(parsed(bothPrograms(insns))).isUseful());
  insns.erase(insns.begin(), insns.begin() + 4999);
  EXPECT_FALSE(AddressCondition(parsed(bothPrograms(insns))).isUseful());
}

}  // namespace
}  // namespace capfleet::test
