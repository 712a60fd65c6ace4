// The code keeps A in eax, X in ecx, the packet in rdi, its captured length in rsi (64 bits), its
// original length in r8d and M in the 64 bytes below the stack pointer, which no signal touches.
// edx, r9 and r10 are free. Every load follows a comparison with the captured length, and every
// jump goes forward to an instruction of the program, so the code terminates and stays inside the
// packet whatever the program is.
#include "filter/bpf_machine_code.h"

#include <sys/mman.h>

#include <cassert>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "filter/bpf_opcode.h"
#include "os/byte_order.h"
#include "packet/pcap_format.h"

namespace capfleet {
namespace {

/// Jump conditions in the CPU's encoding; opposites differ in the last bit.
enum Condition : uint8_t {
  kBelow = 2,
  kNotBelow = 3,
  kEqual = 4,
  kNotEqual = 5,
  kNotAbove = 6,
  kAbove = 7,
};

Condition oppositeOf(Condition condition) { return static_cast<Condition>(condition ^ 1); }

class Emitter {
 public:
  explicit Emitter(const BpfProgram& program) : program_(program.instructions()) {}

  std::vector<uint8_t> emit() {
    begin();
    for (uint32_t i = 0; i < program_.size(); i++) {
      starts_.push_back(code_.size());
      emitInstruction(i);
    }
    const size_t reject = code_.size();
    add({0x31, 0xC0, 0xC3});  // xor eax,eax; ret
    for (const Jump& jump : jumps_) {
      const size_t target = jump.target == kReject ? reject : starts_[jump.target];
      storeLe32(&code_[jump.at], static_cast<uint32_t>(target - (jump.at + 4)));
    }
    return std::move(code_);
  }

 private:
  static constexpr uint32_t kReject = UINT32_MAX;

  /// A jump distance to be written once its target's address is known.
  struct Jump {
    size_t at;
    uint32_t target;  ///< an instruction of the program, or kReject
  };

  void add(std::initializer_list<uint8_t> bytes) { code_.insert(code_.end(), bytes); }
  void add32(uint32_t value) {
    code_.resize(code_.size() + 4);
    storeLe32(&code_[code_.size() - 4], value);
  }
  void add(std::initializer_list<uint8_t> bytes, uint32_t operand) {
    add(bytes);
    add32(operand);
  }
  /// The offset of a memory slot below the stack pointer, as an instruction's last byte.
  static uint8_t placeOf(uint32_t slot) { return static_cast<uint8_t>(4 * slot - 64); }

  void begin() {
    add({0xF3, 0x0F, 0x1E, 0xFA});  // endbr64: calls by pointer may have to land on it
    add({0x89, 0xF6});              // mov esi,esi: the upper half of a 32-bit argument is undefined
    add({0x41, 0x89, 0xD0});        // mov r8d,edx
    add({0x31, 0xC0});              // xor eax,eax
    add({0x31, 0xC9});              // xor ecx,ecx
  }

  void jumpIf(Condition condition, uint32_t target) {
    add({0x0F, static_cast<uint8_t>(0x80 | condition)});
    jumps_.push_back({code_.size(), target});
    add32(0);
  }

  void jump(uint32_t target) {
    add({0xE9});
    jumps_.push_back({code_.size(), target});
    add32(0);
  }

  void branch(uint32_t i, Condition condition) {
    const uint32_t onTrue = i + 1 + program_[i].jumpTrue;
    const uint32_t onFalse = i + 1 + program_[i].jumpFalse;
    if (onTrue == i + 1) {
      if (onFalse != i + 1) jumpIf(oppositeOf(condition), onFalse);
      return;
    }
    jumpIf(condition, onTrue);
    if (onFalse != i + 1) jump(onFalse);
  }

  void compareWithK(uint32_t i, Condition condition) {
    add({0x3D}, program_[i].k);  // cmp eax,k
    branch(i, condition);
  }
  void compareWithX(uint32_t i, Condition condition) {
    add({0x39, 0xC8});  // cmp eax,ecx
    branch(i, condition);
  }

  /// Continues only if the packet has `bytes` captured bytes at K. False if no packet can have
  /// them.
  bool requireAt(uint32_t k, uint32_t bytes) {
    if (uint64_t{k} + bytes > kMaxCapturedLength) {
      jump(kReject);
      return false;
    }
    add({0x81, 0xFE}, k + bytes);  // cmp esi,k+bytes
    jumpIf(kBelow, kReject);
    return true;
  }

  /// A = what lies at K, by a load from [rdi+K].
  void load(uint32_t k, uint32_t bytes, std::initializer_list<uint8_t> opcode) {
    if (!requireAt(k, bytes)) return;
    add(opcode);
    add({0x87}, k);
    swapBytes(bytes);
  }

  /// A = what lies at X+K, by a load from [rdi+r9]. The sum has 64 bits and cannot wrap around.
  void loadIndexed(uint32_t k, uint32_t bytes, std::initializer_list<uint8_t> opcode) {
    add({0x41, 0xB9}, k);                                  // mov r9d,k
    add({0x49, 0x01, 0xC9});                               // add r9,rcx
    add({0x4D, 0x8D, 0x51, static_cast<uint8_t>(bytes)});  // lea r10,[r9+bytes]
    add({0x49, 0x39, 0xF2});                               // cmp r10,rsi
    jumpIf(kAbove, kReject);
    add(opcode);
    add({0x04, 0x0F});
    swapBytes(bytes);
  }

  void swapBytes(uint32_t bytes) {
    if (bytes == 4) add({0x0F, 0xC8});              // bswap eax
    if (bytes == 2) add({0x66, 0xC1, 0xC0, 0x08});  // rol ax,8
  }

  /// A = the quotient, or the remainder, of A and r9d.
  void divide(bool wantsRemainder) {
    add({0x31, 0xD2});        // xor edx,edx
    add({0x41, 0xF7, 0xF1});  // div r9d
    if (wantsRemainder) add({0x89, 0xD0});
  }
  void divideByK(uint32_t k, bool wantsRemainder) {
    add({0x41, 0xB9}, k);  // mov r9d,k
    divide(wantsRemainder);
  }
  void divideByX(bool wantsRemainder) {
    add({0x85, 0xC9});  // test ecx,ecx
    jumpIf(kEqual, kReject);
    add({0x41, 0x89, 0xC9});  // mov r9d,ecx
    divide(wantsRemainder);
  }

  /// `direction` is the byte in which the instruction encodes left or right.
  void shiftByK(uint32_t k, uint8_t direction) {
    if (k < 32) {
      add({0xC1, direction, static_cast<uint8_t>(k)});
    } else {
      add({0x31, 0xC0});
    }
  }
  void shiftByX(uint8_t direction) {
    add({0x45, 0x31, 0xC9});        // xor r9d,r9d
    add({0xD3, direction});         // by cl, modulo 32
    add({0x83, 0xF9, 0x20});        // cmp ecx,32
    add({0x41, 0x0F, 0x43, 0xC1});  // cmovae eax,r9d
  }

  void emitInstruction(uint32_t i);

  const std::span<const BpfInstruction> program_;
  std::vector<uint8_t> code_;
  std::vector<size_t> starts_;  ///< start offset of each instruction's code
  std::vector<Jump> jumps_;
};

// clang-format off
/// Long, because it is a table.
void Emitter::emitInstruction(uint32_t i) {
  constexpr uint8_t kLeft = 0xE0;
  constexpr uint8_t kRight = 0xE8;
  const uint32_t k = program_[i].k;
  switch (static_cast<BpfOpcode>(program_[i].code)) {
    case BpfOpcode::kLoadWord: return load(k, 4, {0x8B});
    case BpfOpcode::kLoadHalf: return load(k, 2, {0x0F, 0xB7});
    case BpfOpcode::kLoadByte: return load(k, 1, {0x0F, 0xB6});
    case BpfOpcode::kLoadWordIndexed: return loadIndexed(k, 4, {0x42, 0x8B});
    case BpfOpcode::kLoadHalfIndexed: return loadIndexed(k, 2, {0x42, 0x0F, 0xB7});
    case BpfOpcode::kLoadByteIndexed: return loadIndexed(k, 1, {0x42, 0x0F, 0xB6});
    case BpfOpcode::kLoadLength: return add({0x44, 0x89, 0xC0});
    case BpfOpcode::kLoadConstant: return add({0xB8}, k);
    case BpfOpcode::kLoadMemory: return add({0x8B, 0x44, 0x24, placeOf(k)});
    case BpfOpcode::kLoadXConstant: return add({0xB9}, k);
    case BpfOpcode::kLoadXMemory: return add({0x8B, 0x4C, 0x24, placeOf(k)});
    case BpfOpcode::kLoadXLength: return add({0x44, 0x89, 0xC1});
    case BpfOpcode::kLoadXHeaderSize:
      if (!requireAt(k, 1)) return;
      add({0x0F, 0xB6, 0x8F}, k);                        // movzx ecx,byte [rdi+k]
      return add({0x83, 0xE1, 0x0F, 0xC1, 0xE1, 0x02});  // and ecx,15; shl ecx,2
    case BpfOpcode::kStore: return add({0x89, 0x44, 0x24, placeOf(k)});
    case BpfOpcode::kStoreX: return add({0x89, 0x4C, 0x24, placeOf(k)});
    case BpfOpcode::kAddK: return add({0x05}, k);
    case BpfOpcode::kAddX: return add({0x01, 0xC8});
    case BpfOpcode::kSubK: return add({0x2D}, k);
    case BpfOpcode::kSubX: return add({0x29, 0xC8});
    case BpfOpcode::kMulK: return add({0x69, 0xC0}, k);
    case BpfOpcode::kMulX: return add({0x0F, 0xAF, 0xC1});
    case BpfOpcode::kDivK: return divideByK(k, false);
    case BpfOpcode::kDivX: return divideByX(false);
    case BpfOpcode::kOrK: return add({0x0D}, k);
    case BpfOpcode::kOrX: return add({0x09, 0xC8});
    case BpfOpcode::kAndK: return add({0x25}, k);
    case BpfOpcode::kAndX: return add({0x21, 0xC8});
    case BpfOpcode::kShiftLeftK: return shiftByK(k, kLeft);
    case BpfOpcode::kShiftLeftX: return shiftByX(kLeft);
    case BpfOpcode::kShiftRightK: return shiftByK(k, kRight);
    case BpfOpcode::kShiftRightX: return shiftByX(kRight);
    case BpfOpcode::kNegate: return add({0xF7, 0xD8});
    case BpfOpcode::kModK: return divideByK(k, true);
    case BpfOpcode::kModX: return divideByX(true);
    case BpfOpcode::kXorK: return add({0x35}, k);
    case BpfOpcode::kXorX: return add({0x31, 0xC8});
    case BpfOpcode::kJump: return k == 0 ? void() : jump(i + 1 + k);
    case BpfOpcode::kJumpEqualK: return compareWithK(i, kEqual);
    case BpfOpcode::kJumpEqualX: return compareWithX(i, kEqual);
    case BpfOpcode::kJumpGreaterK: return compareWithK(i, kAbove);
    case BpfOpcode::kJumpGreaterX: return compareWithX(i, kAbove);
    case BpfOpcode::kJumpNotLessK: return compareWithK(i, kNotBelow);
    case BpfOpcode::kJumpNotLessX: return compareWithX(i, kNotBelow);
    case BpfOpcode::kJumpSetK:
      add({0xA9}, k);  // test eax,k
      return branch(i, kNotEqual);
    case BpfOpcode::kJumpSetX:
      add({0x85, 0xC8});  // test eax,ecx
      return branch(i, kNotEqual);
    case BpfOpcode::kReturnK:
      add({0xB8}, k);
      return add({0xC3});
    case BpfOpcode::kReturnA: return add({0xC3});
    case BpfOpcode::kMoveAToX: return add({0x89, 0xC1});
    case BpfOpcode::kMoveXToA: return add({0x89, 0xC8});
  }
  __builtin_unreachable();  // BpfProgram knows only these opcodes
}
// clang-format on

#if defined(__x86_64__)
constexpr bool kRunsHere = true;
#else
constexpr bool kRunsHere = false;
#endif

}  // namespace

std::unique_ptr<const BpfMachineCode> BpfMachineCode::make(const BpfProgram& program) {
  if (!kRunsHere) return nullptr;
  const std::vector<uint8_t> code = Emitter(program).emit();
  void* const memory =
      mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::memcpy(memory, code.data(), code.size());
  if (mprotect(memory, code.size(), PROT_READ | PROT_EXEC) != 0) {
    munmap(memory, code.size());
    return nullptr;
  }
  return std::unique_ptr<const BpfMachineCode>(new BpfMachineCode(memory, code.size()));
}

bool BpfMachineCode::isAvailable() {
  constexpr uint8_t kAcceptAll[kBpfInstructionBytes] = {6, 0, 0, 0, 1, 0, 0, 0};  // ret #1
  const auto program = BpfProgram::parse(kAcceptAll);
  assert(program);
  return make(*program) != nullptr;
}

BpfMachineCode::BpfMachineCode(void* memory, size_t bytes)
    : memory_(memory), bytes_(bytes), run_(reinterpret_cast<Function>(memory)) {}

BpfMachineCode::~BpfMachineCode() { munmap(memory_, bytes_); }

}  // namespace capfleet
