#include "filter/bpf_machine_code.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cstdlib>

#include "filter/bpf_evaluator.h"
#include "filter/bpf_filter.h"
#include "packet/pcap_format.h"
#include "support/bpf_helper.h"
#include "support/random_bpf.h"
#include "support/seed.h"

namespace capfleet::test {
namespace {

/// Where machine code is not supported, the evaluator's tests are sufficient.
#define SKIP_WITHOUT_MACHINE_CODE()                                                         \
  if (!BpfMachineCode::make(parsed(compiled("ip")))) {                                      \
    GTEST_SKIP() << "no machine code here: run it on x86-64, where memory may be executed"; \
  }

/// Memory that ends at an unmapped page, so that a load beyond the packet ends the test: sanitizers
/// do not check machine code.
class GuardedPacket {
 public:
  GuardedPacket() : memory_(mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0)) {
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(mprotect(static_cast<uint8_t*>(memory_) + kBytes, kBytes, PROT_NONE), 0);
  }
  ~GuardedPacket() { munmap(memory_, 2 * kBytes); }

  const uint8_t* put(const Bytes& packet) {
    uint8_t* const begin = static_cast<uint8_t*>(memory_) + kBytes - packet.size();
    std::copy(packet.begin(), packet.end(), begin);
    return begin;
  }

 private:
  static constexpr size_t kBytes = kMaxCapturedLength;
  static constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const memory_;
};

/// A program in its three forms.
struct Machines {
  explicit Machines(BothPrograms programs)
      : theirs(std::move(programs)), evaluator(parsed(theirs)) {
    code = BpfMachineCode::make(parsed(theirs));
  }

  /// The verdicts of all three on the packet.
  bool accepts(const Bytes& packet, uint32_t originalLength) {
    const uint8_t* const begin = memory.put(packet);
    const auto length = static_cast<uint32_t>(packet.size());
    const bool expected = libpcapAccepts(theirs, packet, originalLength);
    EXPECT_EQ(evaluator.accepts(begin, length, originalLength), expected);
    EXPECT_EQ(code->accepts(begin, length, originalLength), expected);
    return expected;
  }

  BothPrograms theirs;
  BpfEvaluator evaluator;
  std::unique_ptr<const BpfMachineCode> code;
  GuardedPacket memory;
};

/// How many filters or programs to generate: CAPFLEET_FILTERS, or by default this many.
uint64_t timesAsked(uint64_t otherwise) {
  const char* const asked = std::getenv("CAPFLEET_FILTERS");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : otherwise;
}

/// Whether the program reads a memory slot that was never written. Its value would be left over on
/// libpcap's stack, so the results need not agree.
bool readsUnwritten(const BothPrograms& programs) {
  const auto program = BpfProgram::parse(programs.bytes);
  if (program) return false;
  const char* const kReason = "reads a memory slot that may not have been written";
  EXPECT_NE(program.error().message.find(kReason), std::string::npos) << program.error().message;
  return true;
}

/// Without the optimizer libpcap generates such programs only for these two words, so it is right
/// to use the program without it where the optimizer's is rejected (bpf_compile_main.cc).
bool mayReadUnwritten(const std::string& expression) {
  const auto has = [&](const char* word) { return expression.find(word) != std::string::npos; };
  return has("geneve") || has("vxlan");
}

TEST(BpfMachineCode, AgreesWithEvaluatorAndLibpcapOnGeneratedFilters) {
  SKIP_WITHOUT_MACHINE_CODE();
  auto random = seededRandom();
  const uint64_t filters = timesAsked(400);
  uint64_t accepted = 0;
  uint64_t tried = 0;
  while (tried < filters) {
    const std::string expression = randomExpression(random);
    const bool isOptimized = random() % 2 == 0;
    std::optional<BothPrograms> programs = tryCompiled(expression, isOptimized);
    if (!programs) continue;
    tried++;
    if (readsUnwritten(*programs)) {
      ASSERT_TRUE(isOptimized || mayReadUnwritten(expression)) << expression;
      continue;
    }
    Machines machines(std::move(*programs));
    for (int i = 0; i < 40; i++) {
      const Bytes packet = randomPacket(random);
      const auto length = static_cast<uint32_t>(packet.size() + randomBelow(random, 3) * 1000);
      accepted += machines.accepts(packet, length) ? 1 : 0;
      ASSERT_FALSE(testing::Test::HasFailure()) << expression;
    }
  }
  EXPECT_GT(accepted, filters) << "the packets must not all fail";
}

TEST(BpfMachineCode, AgreesWithEvaluatorAndLibpcapOnRandomPrograms) {
  SKIP_WITHOUT_MACHINE_CODE();
  auto random = seededRandom();
  const uint64_t programs = timesAsked(static_cast<uint64_t>(turns(10'000, 1'000)));
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < programs; i++) {
    Machines machines(bothPrograms(randomProgram(random)));
    for (int j = 0; j < 4; j++) {
      const Bytes packet = randomPacket(random);
      const auto length = static_cast<uint32_t>(random() % 2 == 0 ? packet.size() : random());
      accepted += machines.accepts(packet, length) ? 1 : 0;
      ASSERT_FALSE(testing::Test::HasFailure());
    }
  }
  EXPECT_GT(accepted, programs / 10);
}

TEST(BpfMachineCode, RejectsWhatCannotBeComputed) {
  SKIP_WITHOUT_MACHINE_CODE();
  constexpr bpf_insn kAccept = {BPF_RET | BPF_K, 0, 0, 1};
  const auto accepts = [](std::vector<bpf_insn> instructions, size_t packetBytes) {
    return Machines(bothPrograms(std::move(instructions))).accepts(Bytes(packetBytes), 1000);
  };
  const auto loadsWord = [&](uint32_t at, size_t packetBytes) {
    return accepts({{BPF_LD | BPF_W | BPF_ABS, 0, 0, at}, kAccept}, packetBytes);
  };
  EXPECT_FALSE(loadsWord(0, 0));
  EXPECT_TRUE(loadsWord(0, 4));
  EXPECT_FALSE(loadsWord(1, 4));
  EXPECT_TRUE(loadsWord(kMaxCapturedLength - 4, kMaxCapturedLength));
  for (const uint32_t at : {kMaxCapturedLength - 3, 0x7ffffffdu, 0x80000000u, 0xfffffffcu}) {
    EXPECT_FALSE(loadsWord(at, kMaxCapturedLength));
  }
  for (const uint32_t x : {1u, 0x80000000u, 0xffffffffu}) {
    EXPECT_FALSE(accepts(
        {{BPF_LDX | BPF_IMM, 0, 0, x}, {BPF_LD | BPF_B | BPF_IND, 0, 0, 0xffffffff}, kAccept}, 64))
        << "an offset past 2^32 must not wrap around";
  }
  EXPECT_FALSE(accepts({{BPF_ALU | BPF_DIV | BPF_X, 0, 0, 0}, kAccept}, 4));
  EXPECT_FALSE(accepts({{BPF_ALU | BPF_MOD | BPF_X, 0, 0, 0}, kAccept}, 4));
}

TEST(BpfMachineCode, TakesTheLongestProgram) {
  SKIP_WITHOUT_MACHINE_CODE();
  // Each jump goes as far as it can; the skipped instructions would reject.
  std::vector<bpf_insn> program;
  while (program.size() + 1 < kMaxBpfInstructions) {
    const size_t left = kMaxBpfInstructions - 2 - program.size();
    const auto over = static_cast<uint8_t>(std::min<size_t>(left, 255));
    program.push_back({BPF_JMP | BPF_JEQ | BPF_K, over, 0, 0});
    for (int i = 0; i < over; i++) program.push_back({BPF_RET | BPF_K, 0, 0, 0});
  }
  program.push_back({BPF_RET | BPF_K, 0, 0, 1});
  EXPECT_TRUE(Machines(bothPrograms(std::move(program))).accepts(Bytes(1), 1));
}

/// Like MemoryDenyWriteExecute of systemd: from now on no memory of this process can be made
/// executable. Linux headers before 6.3 do not define these names.
constexpr int kSetNoNewCode = 65;     // PR_SET_MDWE
constexpr int kGetNoNewCode = 66;     // PR_GET_MDWE
constexpr unsigned long kRefuse = 1;  // PR_MDWE_REFUSE_EXEC_GAIN

TEST(BpfMachineCode, IsNotNeededWhereMemoryMayNotBecomeExecutable) {
  SKIP_WITHOUT_MACHINE_CODE();
  if (prctl(kGetNoNewCode, 0, 0, 0, 0) < 0) GTEST_SKIP() << "it takes Linux 6.3 or newer";
  const BpfProgram program = parsed(compiled("ip"));
  Bytes ip(60, 0);
  ip[12] = 0x08;
  const Bytes other(60, 0);
  EXPECT_TRUE(BpfMachineCode::isAvailable());
  // In a child process, because it cannot be undone.
  EXPECT_EXIT(
      {
        const bool isDenied = prctl(kSetNoNewCode, kRefuse, 0, 0, 0) == 0;
        const bool hasNoCode =
            BpfMachineCode::make(program) == nullptr && !BpfMachineCode::isAvailable();
        const BpfFilter filter(program);
        const bool isRight =
            filter.accepts(ip.data(), 60, 60) && !filter.accepts(other.data(), 60, 60);
        std::_Exit(isDenied && hasNoCode && isRight ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace capfleet::test
