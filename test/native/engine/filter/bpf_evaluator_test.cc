#include "filter/bpf_evaluator.h"

#include <gtest/gtest.h>

#include "support/bpf_helper.h"
#include "support/seed.h"

namespace capfleet::test {
namespace {

/// A packet that looks like something: most filters look no further than a few header fields.
Bytes randomPacket(std::mt19937_64& random) {
  Bytes packet(randomBelow(random, 120));
  for (uint8_t& byte : packet) byte = static_cast<uint8_t>(random());
  const auto put = [&](size_t at, std::initializer_list<int> bytes) {
    for (const int byte : bytes) {
      if (at < packet.size()) packet[at] = static_cast<uint8_t>(byte);
      at++;
    }
  };
  size_t at = 12;
  if (random() % 4 == 0) {
    put(at, {0x81, 0x00, 0x00, static_cast<int>(random() % 8)});
    at += 4;
  }
  const int protocols[] = {1, 6, 6, 17, 17, 58, 47};
  const int protocol = protocols[randomBelow(random, std::size(protocols))];
  if (random() % 4 == 0) {
    put(at, {0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, protocol});
  } else {
    put(at, {0x08, 0x00, 0x45, 0, 0, 60, 0, 0, random() % 5 == 0 ? 0x20 : 0, 0, 64, protocol});
    put(at + 14, {10, 0, 0, static_cast<int>(random() % 4)});
    put(at + 22, {0, random() % 2 == 0 ? 53 : 80, 1, 187});
  }
  return packet;
}

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

/// A valid program of random instructions, which reads no memory slot before it is written.
std::vector<bpf_insn> randomProgram(std::mt19937_64& random) {
  static const uint16_t codes[] = {0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x80, 0x00, 0x60, 0x01,
                                   0x61, 0x81, 0xb1, 0x02, 0x03, 0x04, 0x0c, 0x14, 0x1c, 0x24,
                                   0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x54, 0x5c, 0x64, 0x6c, 0x74,
                                   0x7c, 0x84, 0x94, 0x9c, 0xa4, 0xac, 0x05, 0x15, 0x1d, 0x25,
                                   0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x16, 0x07, 0x87};
  std::vector<bpf_insn> program;
  for (uint32_t slot = 0; slot < kBpfMemorySlots; slot++) program.push_back({BPF_ST, 0, 0, slot});
  const size_t count = 1 + randomBelow(random, 40);
  for (size_t i = 0; i < count; i++) {
    const size_t after = count - i;  // with the final return
    bpf_insn in{codes[randomBelow(random, std::size(codes))], 0, 0,
                static_cast<uint32_t>(random() % 2 == 0 ? random() % 40 : random())};
    in.jt = static_cast<uint8_t>(randomBelow(random, after));
    in.jf = static_cast<uint8_t>(randomBelow(random, after));
    if (in.code == 0x05) in.k = static_cast<uint32_t>(randomBelow(random, after));
    if (in.code == 0x60 || in.code == 0x61 || in.code == 0x02 || in.code == 0x03) in.k %= 16;
    // libpcap shifts by a constant of 32 or more as the machine does; the result is undefined.
    if (in.code == 0x64 || in.code == 0x74) in.k %= 32;
    if ((in.code == 0x34 || in.code == 0x94) && in.k == 0) in.k = 1;
    program.push_back(in);
  }
  program.push_back({BPF_RET | BPF_A, 0, 0, 0});
  return program;
}

TEST(BpfEvaluator, AgreesWithLibpcapOnRandomPrograms) {
  auto random = seededRandom();
  uint64_t accepted = 0;
  for (int i = 0; i < 40000; i++) {
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
  EXPECT_GT(accepted, 10000u);
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
