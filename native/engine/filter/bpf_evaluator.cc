// Threaded code: each handler jumps directly to the next one. A `switch` in a loop would share one
// indirect branch, which CPUs predict worse.
#include "filter/bpf_evaluator.h"

#include "filter/bpf_opcode.h"
#include "os/byte_order.h"

// Labels as values are an extension of GCC and clang.
#pragma GCC diagnostic ignored "-Wpedantic"

namespace capfleet {
namespace {

/// Indexes into the list of opcodes, as used in a step's `handler`.
enum HandlerIndex : uint32_t {
#define CAPFLEET_INDEX(name, code) k##name##Index,
  CAPFLEET_BPF_OPCODES(CAPFLEET_INDEX)
#undef CAPFLEET_INDEX
};

uint32_t handlerOf(uint16_t code) {
  switch (code) {
#define CAPFLEET_CASE(name, code) \
  case code:                      \
    return k##name##Index;
    CAPFLEET_BPF_OPCODES(CAPFLEET_CASE)
#undef CAPFLEET_CASE
    default:
      __builtin_unreachable();  // BpfProgram knows only these opcodes
  }
}

bool holds(uint64_t offset, uint32_t bytes, uint32_t capturedLength) {
  return offset + bytes <= capturedLength;
}

uint32_t shiftLeft(uint32_t value, uint32_t by) { return by < 32 ? value << by : 0; }
uint32_t shiftRight(uint32_t value, uint32_t by) { return by < 32 ? value >> by : 0; }

}  // namespace

BpfEvaluator::BpfEvaluator(const BpfProgram& program) {
  const auto instructions = program.instructions();
  steps_.reserve(instructions.size());
  for (uint32_t i = 0; i < instructions.size(); i++) {
    const BpfInstruction& in = instructions[i];
    const bool isJump = static_cast<BpfOpcode>(in.code) == BpfOpcode::kJump;
    steps_.push_back(
        {handlerOf(in.code), in.k, i + 1 + (isJump ? in.k : in.jumpTrue), i + 1 + in.jumpFalse});
  }
}

// clang-format off
#define DISPATCH() goto *kHandlers[step->handler]
#define NEXT() do { ++step; DISPATCH(); } while (false)
#define BRANCH(condition) \
  do { step = steps + ((condition) ? step->onTrue : step->onFalse); DISPATCH(); } while (false)
// Offsets are added in 64 bits, so that a load past 2^32 is out of bounds and does not wrap around.
#define LOAD(offset, bytes, load) \
  do { \
    const uint64_t at = (offset); \
    if (!holds(at, bytes, capturedLength)) return false; \
    a = load(packet + at); \
  } while (false); NEXT()

/// One function, deliberately long: a computed goto cannot leave its function.
bool BpfEvaluator::accepts(const uint8_t* packet, uint32_t capturedLength,
                           uint32_t originalLength) const {
  static const void* const kHandlers[] = {
#define CAPFLEET_LABEL(name, code) &&name,
      CAPFLEET_BPF_OPCODES(CAPFLEET_LABEL)
#undef CAPFLEET_LABEL
  };
  const Step* const steps = steps_.data();
  const Step* step = steps;
  uint32_t a = 0;
  uint32_t x = 0;
  uint32_t memory[kBpfMemorySlots] = {};
  const auto loadByte = [](const uint8_t* p) { return uint32_t{*p}; };
  DISPATCH();

  LoadWord: LOAD(step->k, 4, loadBe32);
  LoadHalf: LOAD(step->k, 2, loadBe16);
  LoadByte: LOAD(step->k, 1, loadByte);
  LoadWordIndexed: LOAD(uint64_t{x} + step->k, 4, loadBe32);
  LoadHalfIndexed: LOAD(uint64_t{x} + step->k, 2, loadBe16);
  LoadByteIndexed: LOAD(uint64_t{x} + step->k, 1, loadByte);
  LoadLength: a = originalLength; NEXT();
  LoadConstant: a = step->k; NEXT();
  LoadMemory: a = memory[step->k]; NEXT();
  LoadXConstant: x = step->k; NEXT();
  LoadXMemory: x = memory[step->k]; NEXT();
  LoadXLength: x = originalLength; NEXT();
  LoadXHeaderSize:
    if (!holds(step->k, 1, capturedLength)) return false;
    x = (packet[step->k] & 15u) * 4;
    NEXT();
  Store: memory[step->k] = a; NEXT();
  StoreX: memory[step->k] = x; NEXT();
  AddK: a += step->k; NEXT();
  AddX: a += x; NEXT();
  SubK: a -= step->k; NEXT();
  SubX: a -= x; NEXT();
  MulK: a *= step->k; NEXT();
  MulX: a *= x; NEXT();
  DivK: a /= step->k; NEXT();
  DivX: if (x == 0) return false; a /= x; NEXT();
  OrK: a |= step->k; NEXT();
  OrX: a |= x; NEXT();
  AndK: a &= step->k; NEXT();
  AndX: a &= x; NEXT();
  ShiftLeftK: a = shiftLeft(a, step->k); NEXT();
  ShiftLeftX: a = shiftLeft(a, x); NEXT();
  ShiftRightK: a = shiftRight(a, step->k); NEXT();
  ShiftRightX: a = shiftRight(a, x); NEXT();
  Negate: a = 0 - a; NEXT();
  ModK: a %= step->k; NEXT();
  ModX: if (x == 0) return false; a %= x; NEXT();
  XorK: a ^= step->k; NEXT();
  XorX: a ^= x; NEXT();
  Jump: step = steps + step->onTrue; DISPATCH();
  JumpEqualK: BRANCH(a == step->k);
  JumpEqualX: BRANCH(a == x);
  JumpGreaterK: BRANCH(a > step->k);
  JumpGreaterX: BRANCH(a > x);
  JumpNotLessK: BRANCH(a >= step->k);
  JumpNotLessX: BRANCH(a >= x);
  JumpSetK: BRANCH((a & step->k) != 0);
  JumpSetX: BRANCH((a & x) != 0);
  ReturnK: return step->k != 0;
  ReturnA: return a != 0;
  MoveAToX: x = a; NEXT();
  MoveXToA: a = x; NEXT();
}
// clang-format on

#undef LOAD
#undef BRANCH
#undef NEXT
#undef DISPATCH

}  // namespace capfleet
