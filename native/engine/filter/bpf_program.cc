#include "filter/bpf_program.h"

#include <initializer_list>

#include "filter/bpf_opcode.h"
#include "os/byte_order.h"

namespace capfleet {
namespace {

Error badInstruction(size_t index, const char* why) {
  return {Code::kBadBpf, "filter program: instruction " + std::to_string(index) + " " + why};
}

constexpr uint16_t kClassMask = 0x07;
constexpr uint16_t kJumpClass = 0x05;
constexpr uint16_t kReturnClass = 0x06;

/// `after` instructions follow this one; a jump must land on one of them.
bool jumpStaysInside(const BpfInstruction& instruction, size_t after) {
  if (static_cast<BpfOpcode>(instruction.code) == BpfOpcode::kJump) return instruction.k < after;
  return instruction.jumpTrue < after && instruction.jumpFalse < after;
}

bool namesMissingSlot(const BpfInstruction& instruction) {
  switch (static_cast<BpfOpcode>(instruction.code)) {
    case BpfOpcode::kLoadMemory:
    case BpfOpcode::kLoadXMemory:
    case BpfOpcode::kStore:
    case BpfOpcode::kStoreX:
      return instruction.k >= kBpfMemorySlots;
    default:
      return false;
  }
}

bool dividesByZero(const BpfInstruction& instruction) {
  const auto opcode = static_cast<BpfOpcode>(instruction.code);
  return (opcode == BpfOpcode::kDivK || opcode == BpfOpcode::kModK) && instruction.k == 0;
}

/// The memory slots that every path to an instruction has written, determined as in the kernel:
/// jumps only go forward, so one pass over the program sees all paths to each instruction before
/// it.
class WrittenSlots {
 public:
  explicit WrittenSlots(size_t instructions) : atTargets_(instructions, kAll) {}

  /// Records what instruction `i` writes, and for which successors. False if it reads a slot that
  /// may not have been written. REQUIRES: called for each instruction in turn; its jumps stay
  /// inside the program.
  bool pass(size_t i, const BpfInstruction& instruction) {
    written_ &= atTargets_[i];
    switch (static_cast<BpfOpcode>(instruction.code)) {
      case BpfOpcode::kLoadMemory:
      case BpfOpcode::kLoadXMemory:
        return (written_ & bitOf(instruction)) != 0;
      case BpfOpcode::kStore:
      case BpfOpcode::kStoreX:
        written_ |= bitOf(instruction);
        return true;
      case BpfOpcode::kJump:
        leave({i + 1 + instruction.k});
        return true;
      default:
        break;
    }
    const uint16_t kind = instruction.code & kClassMask;
    if (kind == kJumpClass) leave({i + 1 + instruction.jumpTrue, i + 1 + instruction.jumpFalse});
    if (kind == kReturnClass) leave({});
    return true;
  }

 private:
  static constexpr uint16_t kAll = 0xFFFF;
  static_assert(kBpfMemorySlots == 16);

  static uint16_t bitOf(const BpfInstruction& instruction) {
    return static_cast<uint16_t>(1u << instruction.k);
  }
  /// Execution only continues at the targets; what follows is reached by jumps, or not at all.
  void leave(std::initializer_list<size_t> targets) {
    for (const size_t target : targets) atTargets_[target] &= written_;
    written_ = kAll;
  }

  uint16_t written_ = 0;
  std::vector<uint16_t> atTargets_;  ///< by jumps from all instructions so far
};

constexpr const char* kMayReadUnwritten =
    "reads a memory slot that may not have been written: libpcap cannot compile \"geneve\" and "
    "\"pppoes\" for link types with headers of variable length, such as 802.11 with radiotap (use "
    "\"udp port 6081\" there); elsewhere, what follows \"geneve\" in a filter is matched inside "
    "the "
    "tunnel: write conditions for other packets before it, as in \"tcp or geneve\"";

Status check(std::span<const BpfInstruction> program) {
  WrittenSlots slots(program.size());
  for (size_t i = 0; i < program.size(); i++) {
    const BpfInstruction& instruction = program[i];
    if (!isKnownBpfOpcode(instruction.code)) return badInstruction(i, "has an unknown opcode");
    if ((instruction.code & kClassMask) == kJumpClass &&
        !jumpStaysInside(instruction, program.size() - i - 1)) {
      return badInstruction(i, "jumps backward or out of the program");
    }
    if (namesMissingSlot(instruction)) return badInstruction(i, "uses a memory slot above 15");
    if (dividesByZero(instruction)) return badInstruction(i, "divides by zero");
    if (!slots.pass(i, instruction)) return badInstruction(i, kMayReadUnwritten);
  }
  if ((program.back().code & kClassMask) != kReturnClass) {
    return badInstruction(program.size() - 1, "is the last and does not return");
  }
  return ok();
}

}  // namespace

Result<BpfProgram> BpfProgram::parse(std::span<const uint8_t> bytes) {
  if (bytes.empty() || bytes.size() % kBpfInstructionBytes != 0) {
    return Error{Code::kBadBpf, "filter program: its size must be a positive multiple of 8 bytes"};
  }
  const size_t count = bytes.size() / kBpfInstructionBytes;
  if (count > kMaxBpfInstructions) {
    return Error{Code::kBadBpf, "filter program: " + std::to_string(count) +
                                    " instructions, but at most 65536 are allowed"};
  }
  std::vector<BpfInstruction> instructions(count);
  for (size_t i = 0; i < count; i++) {
    const uint8_t* p = bytes.data() + i * kBpfInstructionBytes;
    instructions[i] = {loadLe16(p), p[2], p[3], loadLe32(p + 4)};
  }
  if (Status status = check(instructions); !status) return status.error();
  return BpfProgram(std::move(instructions));
}

}  // namespace capfleet
