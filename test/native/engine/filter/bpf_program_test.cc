#include "filter/bpf_program.h"

#include <gtest/gtest.h>

#include "filter/bpf_opcode.h"
#include "support/bpf_helper.h"
#include "support/seed.h"

namespace capfleet::test {
namespace {

constexpr bpf_insn kAccept = {BPF_RET | BPF_K, 0, 0, 1};

/// The message of the refusal, or "" when the program is accepted.
std::string refusal(std::vector<bpf_insn> instructions) {
  const auto program = BpfProgram::parse(bothPrograms(std::move(instructions)).bytes);
  if (program) return "";
  EXPECT_EQ(program.error().code, Code::kBadBpf);
  return program.error().message;
}

TEST(BpfProgram, AcceptsWhatLibpcapCompiles) {
  for (const char* expression : {"", "tcp port 443", "vlan and ip6", "len > 100 or icmp",
                                 "ip[6:2] & 0x1fff = 0", "tcp[((tcp[12] & 0xf0) >> 2)] = 0x16"}) {
    const auto program = BpfProgram::parse(compiled(expression).bytes);
    ASSERT_TRUE(program) << expression;
    EXPECT_EQ(program->size() * kBpfInstructionBytes, compiled(expression).bytes.size());
  }
}

TEST(BpfProgram, RefusesTheWrongSize) {
  EXPECT_FALSE(BpfProgram::parse({}));
  const Bytes torn(12);
  EXPECT_FALSE(BpfProgram::parse(torn));
  const std::vector<bpf_insn> longest(kMaxBpfInstructions, kAccept);
  EXPECT_EQ(refusal(longest), "");
  const std::vector<bpf_insn> tooLong(kMaxBpfInstructions + 1, kAccept);
  EXPECT_EQ(refusal(tooLong), "filter program: 65537 instructions, at most 65536 are allowed");
}

TEST(BpfProgram, RefusesAnUnknownOpcode) {
  EXPECT_EQ(refusal({{0xffff, 0, 0, 0}, kAccept}),
            "filter program: instruction 0 has an unknown opcode");
  // The low byte alone would be a known one.
  EXPECT_NE(refusal({{0x0128, 0, 0, 0}, kAccept}), "");
}

TEST(BpfProgram, RefusesJumpsOutOfTheProgram) {
  EXPECT_EQ(refusal({{BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0}, kAccept}), "");
  EXPECT_NE(refusal({{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0}, kAccept}), "");
  EXPECT_NE(refusal({{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0}, kAccept}), "");
  EXPECT_NE(refusal({{BPF_JMP | BPF_JA, 0, 0, 1}, kAccept}), "");
  // Backward, as a program that never ends would.
  EXPECT_EQ(refusal({{BPF_JMP | BPF_JA, 0, 0, 0xffffffff}, kAccept}),
            "filter program: instruction 0 jumps backward or out of the program");
}

TEST(BpfProgram, RefusesMemoryThatDoesNotExist) {
  EXPECT_EQ(refusal({{BPF_ST, 0, 0, 15}, kAccept}), "");
  constexpr uint16_t kMemoryCodes[] = {BPF_ST, BPF_STX, BPF_LD | BPF_MEM, BPF_LDX | BPF_MEM};
  for (const uint16_t code : kMemoryCodes) {
    EXPECT_EQ(refusal({kAccept, {code, 0, 0, 16}, kAccept}),
              "filter program: instruction 1 names a memory slot above 15");
  }
}

TEST(BpfProgram, RefusesDivisionByAConstantZero) {
  EXPECT_NE(refusal({{BPF_ALU | BPF_DIV | BPF_K, 0, 0, 0}, kAccept}), "");
  EXPECT_NE(refusal({{BPF_ALU | BPF_MOD | BPF_K, 0, 0, 0}, kAccept}), "");
  EXPECT_EQ(refusal({{BPF_ALU | BPF_DIV | BPF_X, 0, 0, 0}, kAccept}), "");
}

TEST(BpfProgram, RefusesAProgramThatRunsOffItsEnd) {
  EXPECT_EQ(refusal({kAccept, {BPF_LD | BPF_IMM, 0, 0, 1}}),
            "filter program: instruction 1 is the last and does not return");
}

TEST(BpfProgram, RandomBytesNeverDoHarm) {
  auto random = seededRandom();
  for (int i = 0; i < 20000; i++) {
    Bytes bytes(8 * (1 + randomBelow(random, 6)));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 3 == 0 ? random() : 6);
    const auto program = BpfProgram::parse(bytes);
    if (!program) {
      EXPECT_EQ(program.error().code, Code::kBadBpf);
    }
  }
}

}  // namespace
}  // namespace capfleet::test
