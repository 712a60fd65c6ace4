// Packets, programs and filter expressions generated for tests of the BPF machines.
#pragma once

#include <pcap/pcap.h>

#include <string>
#include <vector>

#include "filter/bpf_program.h"
#include "support/seed.h"
#include "support/temp_directory.h"

namespace capfleet::test {

/// A packet with plausible headers: most filters check only a few header fields.
inline Bytes randomPacket(std::mt19937_64& random) {
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
    if (protocol == 17 && random() % 2 == 0) {
      const int optionWords = static_cast<int>(random() % 3);
      put(at + 24, {0x17, 0xc1, 0, 60, 0, 0, optionWords, 0, 0x65, 0x58, 0, 0, 5, 0});  // GENEVE
      const size_t inner = at + 38 + 4 * static_cast<size_t>(optionWords);
      put(inner + 12, {0x08, 0x00, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6});
      put(inner + 26, {10, 0, 0, static_cast<int>(random() % 4)});
    }
  }
  return packet;
}

/// A valid program of random instructions, which reads no memory slot before it is written.
inline std::vector<bpf_insn> randomProgram(std::mt19937_64& random) {
  static const uint16_t codes[] = {0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x80, 0x00, 0x60, 0x01,
                                   0x61, 0x81, 0xb1, 0x02, 0x03, 0x04, 0x0c, 0x14, 0x1c, 0x24,
                                   0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x54, 0x5c, 0x64, 0x6c, 0x74,
                                   0x7c, 0x84, 0x94, 0x9c, 0xa4, 0xac, 0x05, 0x15, 0x1d, 0x25,
                                   0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x16, 0x07, 0x87};
  std::vector<bpf_insn> program;
  for (uint32_t slot = 0; slot < kBpfMemorySlots; slot++) program.push_back({BPF_ST, 0, 0, slot});
  const size_t count = 1 + randomBelow(random, 40);
  for (size_t i = 0; i < count; i++) {
    const size_t after = count - i;  // including the final return
    bpf_insn in{codes[randomBelow(random, std::size(codes))], 0, 0,
                static_cast<uint32_t>(random() % 2 == 0 ? random() % 40 : random())};
    in.jt = static_cast<uint8_t>(randomBelow(random, after));
    in.jf = static_cast<uint8_t>(randomBelow(random, after));
    if (in.code == 0x05) in.k = static_cast<uint32_t>(randomBelow(random, after));
    if (in.code == 0x60 || in.code == 0x61 || in.code == 0x02 || in.code == 0x03) in.k %= 16;
    // libpcap shifts by a constant of 32 or more like the machine; the result is undefined.
    if (in.code == 0x64 || in.code == 0x74) in.k %= 32;
    if ((in.code == 0x34 || in.code == 0x94) && in.k == 0) in.k = 1;
    program.push_back(in);
  }
  program.push_back({BPF_RET | BPF_A, 0, 0, 0});
  return program;
}

/// A condition in libpcap's language on the fields that randomPacket() varies, and on many others.
inline std::string randomCondition(std::mt19937_64& random) {
  const auto below = [&](size_t end) { return std::to_string(randomBelow(random, end)); };
  const auto oneOf = [&](std::initializer_list<const char*> words) {
    return std::string(words.begin()[randomBelow(random, words.size())]);
  };
  const std::string side = oneOf({"", "", "src ", "dst ", "src or dst ", "src and dst "});
  switch (randomBelow(random, 12)) {
    case 0:
      return side + "host 10.0.0." + below(5);
    case 1:
      return side + "net 10.0." + below(2) + ".0/" + std::to_string(20 + randomBelow(random, 5));
    case 2:
      return oneOf({"", "tcp ", "udp ", "sctp "}) + side + "port " +
             oneOf({"53", "80", "443", "0"});
    case 3:
      return oneOf({"", "tcp ", "udp "}) + side + "portrange " + below(90) + "-" +
             std::to_string(90 + randomBelow(random, 400));
    case 4:
      return oneOf({"ip", "ip6", "arp", "tcp", "udp", "icmp", "icmp6", "igmp", "rarp", "stp"});
    case 5:
      return oneOf({"ether", "ip", "ip6"}) + oneOf({" multicast", " proto 47", " proto 17"});
    case 6:
      return oneOf({"vlan", "vlan 3", "mpls", "pppoes", "vlan 5 and ip", "vlan and tcp port 443",
                    "geneve", "geneve 5", "geneve and host 10.0.0.2", "vxlan"});
    case 7:
      return oneOf({"less ", "greater "}) + below(150);
    case 8:
      return side + "host ::" + below(9) + oneOf({"", " and ip6 proto 58"});
    case 9:
      return "ether[" + below(130) + oneOf({"", ":2", ":4"}) + "] " +
             oneOf({"=", "!=", ">", "<", ">=", "<="}) + " " + below(300);
    case 10:
      return oneOf({"ip", "tcp", "udp", "icmp", "ip6"}) + "[" + below(40) +
             oneOf({"", ":2", ":4"}) + "] " +
             oneOf({"&", "|", "^", "+", "-", "*", "/", "%", "<<", ">>"}) + " " +
             std::to_string(1 + randomBelow(random, 31)) + oneOf({" = ", " > ", " != "}) +
             below(70);
    default:
      return "len " + oneOf({"+", "-", "%", "*"}) + " ip[" + below(20) + "] " +
             oneOf({"=", ">", "<="}) + " ether[" +
             oneOf({"len - 1", "ip[3]", "12", "ip[2:2] & 63"}) + "]";
  }
}

/// Conditions joined to an expression, which libpcap may reject.
inline std::string randomExpression(std::mt19937_64& random, int depth = 0) {
  if (depth == 3 || random() % 3 == 0) return randomCondition(random);
  std::string expression = random() % 4 == 0 ? "not (" : "(";
  expression += randomExpression(random, depth + 1) + (random() % 2 == 0 ? " and " : " or ");
  return expression + randomExpression(random, depth + 1) + ")";
}

}  // namespace capfleet::test
