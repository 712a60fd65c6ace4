#include "filter/bpf_evaluator.h"

#include <gtest/gtest.h>

#include "support/bpf_helper.h"
#include "support/random_bpf.h"
#include "support/seed.h"

namespace capfleet::test {
namespace {

TEST(BpfEvaluator, AgreesWithLibpcapOnExpressions) {
  auto random = seededRandom();
  const char* expressions[] = {"",
                               "ip",
                               "ip6",
                               "arp",
                               "tcp",
                               "udp",
                               "icmp",
                               "icmp6",
                               "tcp port 443",
                               "udp port 53",
                               "port 80",
                               "portrange 50-60",
                               "host 10.0.0.1",
                               "src host 10.0.0.2 and tcp",
                               "net 10.0.0.0/8",
                               "not net 10.0.0.0/30",
                               "vlan",
                               "vlan 3 and ip",
                               "vlan and udp port 53",
                               "less 60",
                               "greater 100",
                               "len % 7 == 3",
                               "ip proto 47",
                               "ip broadcast",
                               "ether multicast",
                               "ip multicast",
                               "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
                               "ip[6:2] & 0x3fff != 0",
                               "tcp[((tcp[12] & 0xf0) >> 2)] = 0x16",
                               "udp[8] * 3 > len - 10",
                               "ether[0] & 1 = 0 and ip[16] >= 224",
                               "ip[0] << 2 > 20",
                               "len / ip[3] = 1",
                               "len % ip[3] = 1",
                               "ip6[6] ^ 6 = 0",
                               "gateway 10.0.0.1 or ip",
                               "mpls",
                               "pppoes",
                               "ip[8] - ip[9] > 3 or -ip[9] < 5",
                               "(tcp or udp) and not port 80 and not host 10.0.0.3",
                               "ether host 00:11:22:33:44:55",
                               "ip[2:2] | ether[4:4] > 0x7fffffff",
                               "ether[len - 4] = 3",
                               "ether[ip[3]:2] > 300"};
  uint64_t accepted = 0;
  for (const char* expression : expressions) {
    if (std::string(expression).starts_with("gateway")) continue;
    const BothPrograms programs = compiled(expression);
    const BpfEvaluator evaluator(parsed(programs));
    for (int i = 0; i < 3000; i++) {
      const Bytes packet = randomPacket(random);
      const auto length = static_cast<uint32_t>(packet.size() + randomBelow(random, 3) * 1000);
      const bool expected = libpcapAccepts(programs, packet, length);
      accepted += expected ? 1 : 0;
      ASSERT_EQ(evaluator.accepts(packet.data(), static_cast<uint32_t>(packet.size()), length),
                expected)
          << expression;
    }
  }
  EXPECT_GT(accepted, 10000u) << "the packets must not all fail";
}

TEST(BpfEvaluator, AgreesWithLibpcapOnRandomPrograms) {
  auto random = seededRandom();
  uint64_t accepted = 0;
  for (int i = 0; i < turns(40000); i++) {
    const BothPrograms programs = bothPrograms(randomProgram(random));
    const BpfEvaluator evaluator(parsed(programs));
    for (int j = 0; j < 4; j++) {
      const Bytes packet = randomPacket(random);
      const auto length = static_cast<uint32_t>(random() % 2 == 0 ? packet.size() : random());
      const bool expected = libpcapAccepts(programs, packet, length);
      accepted += expected ? 1 : 0;
      ASSERT_EQ(evaluator.accepts(packet.data(), static_cast<uint32_t>(packet.size()), length),
                expected);
    }
  }
  EXPECT_GT(accepted, 50u);
}

TEST(BpfEvaluator, RejectsWhatCannotBeComputed) {
  const auto accepts = [](std::vector<bpf_insn> instructions, const Bytes& packet) {
    const BpfEvaluator evaluator(parsed(bothPrograms(std::move(instructions))));
    return evaluator.accepts(packet.data(), static_cast<uint32_t>(packet.size()), 1000);
  };
  constexpr bpf_insn kAccept = {BPF_RET | BPF_K, 0, 0, 1};
  const Bytes four(4);
  EXPECT_TRUE(accepts({{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}, kAccept}, four));
  EXPECT_FALSE(accepts({{BPF_LD | BPF_W | BPF_ABS, 0, 0, 1}, kAccept}, four));
  EXPECT_FALSE(accepts({{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0xffffffff}, kAccept}, four));
  EXPECT_FALSE(accepts(
      {{BPF_LDX | BPF_IMM, 0, 0, 0xffffffff}, {BPF_LD | BPF_B | BPF_IND, 0, 0, 2}, kAccept}, four))
      << "an offset past 2^32 must not wrap around";
  EXPECT_FALSE(accepts({{BPF_ALU | BPF_DIV | BPF_X, 0, 0, 0}, kAccept}, four));
  EXPECT_FALSE(accepts({{BPF_ALU | BPF_MOD | BPF_X, 0, 0, 0}, kAccept}, four));
  EXPECT_FALSE(accepts({{BPF_LD | BPF_IMM, 0, 0, 1},
                        {BPF_ALU | BPF_LSH | BPF_K, 0, 0, 32},
                        {BPF_RET | BPF_A, 0, 0, 0}},
                       four));
}

}  // namespace
}  // namespace capfleet::test
