// libpcap as the oracle of filters: compiles expressions and runs programs with bpf_filter().
#pragma once

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <optional>
#include <string>
#include <vector>

#include "filter/bpf_program.h"
#include "support/temp_directory.h"

namespace capfleet::test {

/// A program in libpcap's form and in the engine's.
struct BothPrograms {
  std::vector<bpf_insn> theirs;
  Bytes bytes;
};

inline BothPrograms bothPrograms(std::vector<bpf_insn> instructions) {
  BothPrograms programs{std::move(instructions), {}};
  for (const bpf_insn& in : programs.theirs) {
    uint8_t encoded[kBpfInstructionBytes] = {static_cast<uint8_t>(in.code),
                                             static_cast<uint8_t>(in.code >> 8), in.jt, in.jf};
    for (int i = 0; i < 4; i++) encoded[4 + i] = static_cast<uint8_t>(in.k >> (8 * i));
    programs.bytes.insert(programs.bytes.end(), std::begin(encoded), std::end(encoded));
  }
  return programs;
}

/// Nothing if libpcap rejects the expression.
inline std::optional<BothPrograms> tryCompiled(const std::string& expression, bool isOptimized,
                                               int linkType = DLT_EN10MB) {
  pcap_t* handle = pcap_open_dead(linkType, 262144);
  bpf_program program{};
  const int status = pcap_compile(handle, &program, expression.c_str(), isOptimized ? 1 : 0, 0);
  std::optional<BothPrograms> programs;
  if (status == 0) {
    programs = bothPrograms({program.bf_insns, program.bf_insns + program.bf_len});
    pcap_freecode(&program);
  }
  pcap_close(handle);
  return programs;
}

inline BothPrograms compiled(const std::string& expression, int linkType = DLT_EN10MB) {
  const auto programs = tryCompiled(expression, true, linkType);
  EXPECT_TRUE(programs) << expression;
  return programs.value_or(BothPrograms{});
}

inline BpfProgram parsed(const BothPrograms& programs) {
  auto program = BpfProgram::parse(programs.bytes);
  EXPECT_TRUE(program) << (program ? "" : program.error().message);
  return *program;
}

inline bool libpcapAccepts(const BothPrograms& programs, const Bytes& captured,
                           uint32_t originalLength) {
  return bpf_filter(programs.theirs.data(), captured.data(), originalLength,
                    static_cast<u_int>(captured.size())) != 0;
}

}  // namespace capfleet::test
