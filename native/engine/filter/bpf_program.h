// A classic BPF program that is known to be safe to run: every opcode is known, every jump goes
// forward and stays inside, memory slots exist and are written before they are read, no constant
// divisor is zero, the last instruction returns. A program that passes these checks ends after at
// most size() steps and accesses nothing but the packet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "os/result.h"

namespace capfleet {

/// One instruction, as in struct bpf_insn of libpcap.
struct BpfInstruction {
  uint16_t code;
  uint8_t jumpTrue;   ///< instructions to skip when the condition holds
  uint8_t jumpFalse;  ///< and when it does not
  uint32_t k;
};

inline constexpr uint32_t kBpfInstructionBytes = 8;
inline constexpr uint32_t kMaxBpfInstructions = 65536;
inline constexpr uint32_t kBpfMemorySlots = 16;

/// Immutable, so any number of threads may share one.
class BpfProgram {
 public:
  /// Reads a program from little-endian struct bpf_insn's, 8 bytes each, and checks it.
  /// Fails with kBadBpf, naming the instruction.
  static Result<BpfProgram> parse(std::span<const uint8_t> bytes);

  std::span<const BpfInstruction> instructions() const { return instructions_; }
  size_t size() const { return instructions_.size(); }

 private:
  explicit BpfProgram(std::vector<BpfInstruction> instructions)
      : instructions_(std::move(instructions)) {}
  std::vector<BpfInstruction> instructions_;
};

}  // namespace capfleet
