#include "filter/bpf_program.h"

#include <gtest/gtest.h>

#include "filter/bpf_opcode.h"
#include "support/bpf_helper.h"
#include "support/seed.h"

namespace capfleet::test {
namespace {

constexpr bpf_insn kAccept = {BPF_RET | BPF_K, 0, 0, 1};

/// The error message, or "" if the program is accepted.
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
  EXPECT_EQ(refusal(tooLong), "filter program: 65537 instructions, but at most 65536 are allowed");
}

TEST(BpfProgram, RefusesAnUnknownOpcode) {
  EXPECT_EQ(refusal({{0xffff, 0, 0, 0}, kAccept}),
            "filter program: instruction 0 has an unknown opcode");
  // The low byte alone would be a valid instruction.
  EXPECT_NE(refusal({{0x0128, 0, 0, 0}, kAccept}), "");
}

TEST(BpfProgram, RefusesJumpsOutOfTheProgram) {
  EXPECT_EQ(refusal({{BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0}, kAccept}), "");
  EXPECT_NE(refusal({{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0}, kAccept}), "");
  EXPECT_NE(refusal({{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0}, kAccept}), "");
  EXPECT_NE(refusal({{BPF_JMP | BPF_JA, 0, 0, 1}, kAccept}), "");
  // A backward jump, as in a program that never ends.
  EXPECT_EQ(refusal({{BPF_JMP | BPF_JA, 0, 0, 0xffffffff}, kAccept}),
            "filter program: instruction 0 jumps backward or out of the program");
}

TEST(BpfProgram, RefusesMemoryThatDoesNotExist) {
  EXPECT_EQ(refusal({{BPF_ST, 0, 0, 15}, kAccept}), "");
  constexpr uint16_t kMemoryCodes[] = {BPF_ST, BPF_STX, BPF_LD | BPF_MEM, BPF_LDX | BPF_MEM};
  for (const uint16_t code : kMemoryCodes) {
    EXPECT_EQ(refusal({kAccept, {code, 0, 0, 16}, kAccept}),
              "filter program: instruction 1 uses a memory slot above 15");
  }
}

TEST(BpfProgram, RefusesToReadMemoryThatMayNotHaveBeenWritten) {
  constexpr bpf_insn kWrite = {BPF_ST, 0, 0, 3};
  constexpr bpf_insn kReject = {BPF_RET | BPF_K, 0, 0, 0};
  for (const uint16_t code : {uint16_t{BPF_LD | BPF_MEM}, uint16_t{BPF_LDX | BPF_MEM}}) {
    const bpf_insn read = {code, 0, 0, 3};
    const auto jump = [](uint8_t onTrue, uint8_t onFalse) {
      return bpf_insn{BPF_JMP | BPF_JEQ | BPF_K, onTrue, onFalse, 0};
    };
    EXPECT_EQ(refusal({kWrite, read, kAccept}), "");
    EXPECT_TRUE(refusal({read, kAccept})
                    .starts_with("filter program: instruction 0 reads a memory slot that may not"));
    EXPECT_NE(refusal({{BPF_STX, 0, 0, 2}, read, kAccept}), "") << "another slot was written";
    EXPECT_EQ(refusal({jump(0, 1), kWrite, kAccept}), "");
    EXPECT_NE(refusal({jump(0, 1), kWrite, read, kAccept}), "") << "one way passes by the write";
    EXPECT_EQ(refusal({jump(0, 2), kWrite, {BPF_JMP | BPF_JA, 0, 0, 1}, kWrite, read, kAccept}), "")
        << "both ways write";
    EXPECT_EQ(refusal({jump(0, 1), kReject, kWrite, read, kAccept}), "");
    EXPECT_EQ(refusal({kAccept, read, kAccept}), "") << "no way leads there";
    EXPECT_NE(refusal({{BPF_JMP | BPF_JA, 0, 0, 1}, kWrite, read, kAccept}), "");
  }
}

TEST(BpfProgram, RefusesWhatLibpcapLooksForInTunnelsThatAreNotThere) {
  const char* const refused[] = {"(geneve and host 10.0.0.4) or (not mpls)", "geneve or tcp",
                                 "not geneve and host 10.0.0.4"};
  for (const char* expression : refused) {
    const auto program = BpfProgram::parse(compiled(expression).bytes);
    ASSERT_FALSE(program) << expression;
    EXPECT_EQ(program.error().code, Code::kBadBpf);
    EXPECT_TRUE(program.error().message.ends_with("as in \"tcp or geneve\""));
  }
  const char* const taken[] = {"(not mpls) or (geneve and host 10.0.0.4)", "tcp or geneve",
                               "host 10.0.0.4 and not geneve", "geneve and tcp port 80"};
  for (const char* expression : taken) {
    EXPECT_TRUE(BpfProgram::parse(compiled(expression).bytes)) << expression;
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
