// The opcodes of classic BPF that libpcap's compiler can emit. A single list, from which the enum,
// the check and the evaluator's table of handlers are generated, so that they cannot disagree.
//
// A is the accumulator, X the index register, M the memory slots, P the captured bytes (big-endian
// loads), K the constant of the instruction, L the original length.
#pragma once

#include <cstdint>

#define CAPFLEET_BPF_OPCODES(X)                    \
  X(LoadWord, 0x20)        /* A = P[K:4] */        \
  X(LoadHalf, 0x28)        /* A = P[K:2] */        \
  X(LoadByte, 0x30)        /* A = P[K:1] */        \
  X(LoadWordIndexed, 0x40) /* A = P[X+K:4] */      \
  X(LoadHalfIndexed, 0x48) /* A = P[X+K:2] */      \
  X(LoadByteIndexed, 0x50) /* A = P[X+K:1] */      \
  X(LoadLength, 0x80)      /* A = L */             \
  X(LoadConstant, 0x00)    /* A = K */             \
  X(LoadMemory, 0x60)      /* A = M[K] */          \
  X(LoadXConstant, 0x01)   /* X = K */             \
  X(LoadXMemory, 0x61)     /* X = M[K] */          \
  X(LoadXLength, 0x81)     /* X = L */             \
  X(LoadXHeaderSize, 0xb1) /* X = 4*(P[K:1]&15) */ \
  X(Store, 0x02)           /* M[K] = A */          \
  X(StoreX, 0x03)          /* M[K] = X */          \
  X(AddK, 0x04)                                    \
  X(AddX, 0x0c)                                    \
  X(SubK, 0x14)                                    \
  X(SubX, 0x1c)                                    \
  X(MulK, 0x24)                                    \
  X(MulX, 0x2c)                                    \
  X(DivK, 0x34)                                    \
  X(DivX, 0x3c)                                    \
  X(OrK, 0x44)                                     \
  X(OrX, 0x4c)                                     \
  X(AndK, 0x54)                                    \
  X(AndX, 0x5c)                                    \
  X(ShiftLeftK, 0x64)                              \
  X(ShiftLeftX, 0x6c)                              \
  X(ShiftRightK, 0x74)                             \
  X(ShiftRightX, 0x7c)                             \
  X(Negate, 0x84)                                  \
  X(ModK, 0x94)                                    \
  X(ModX, 0x9c)                                    \
  X(XorK, 0xa4)                                    \
  X(XorX, 0xac)                                    \
  X(Jump, 0x05) /* always, by K */                 \
  X(JumpEqualK, 0x15)                              \
  X(JumpEqualX, 0x1d)                              \
  X(JumpGreaterK, 0x25)                            \
  X(JumpGreaterX, 0x2d)                            \
  X(JumpNotLessK, 0x35)                            \
  X(JumpNotLessX, 0x3d)                            \
  X(JumpSetK, 0x45)                                \
  X(JumpSetX, 0x4d)                                \
  X(ReturnK, 0x06)                                 \
  X(ReturnA, 0x16)                                 \
  X(MoveAToX, 0x07)                                \
  X(MoveXToA, 0x87)

namespace capfleet {

enum class BpfOpcode : uint16_t {
#define CAPFLEET_ENUMERATOR(name, code) k##name = code,
  CAPFLEET_BPF_OPCODES(CAPFLEET_ENUMERATOR)
#undef CAPFLEET_ENUMERATOR
};

inline bool isKnownBpfOpcode(uint16_t code) {
  switch (code) {
#define CAPFLEET_CASE(name, code) case code:
    CAPFLEET_BPF_OPCODES(CAPFLEET_CASE)
#undef CAPFLEET_CASE
    return true;
    default:
      return false;
  }
}

}  // namespace capfleet
