#include "filter/bpf_program.h"

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

Status check(std::span<const BpfInstruction> program) {
  for (size_t i = 0; i < program.size(); i++) {
    const BpfInstruction& instruction = program[i];
    if (!isKnownBpfOpcode(instruction.code)) return badInstruction(i, "has an unknown opcode");
    if ((instruction.code & kClassMask) == kJumpClass &&
        !jumpStaysInside(instruction, program.size() - i - 1)) {
      return badInstruction(i, "jumps backward or out of the program");
    }
    if (namesMissingSlot(instruction)) return badInstruction(i, "names a memory slot above 15");
    if (dividesByZero(instruction)) return badInstruction(i, "divides by zero");
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
                                    " instructions, at most 65536 are allowed"};
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
