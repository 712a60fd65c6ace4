// Abstract interpretation of the program: computes for each instruction what all packets that reach
// it have in common. Jumps only go forward, so one pass in program order processes each instruction
// after all of its predecessors.
#include "filter/address_condition.h"

#include <algorithm>
#include <array>

#include "filter/bpf_opcode.h"

namespace capfleet {
namespace {

/// A longer program is assumed to accept packets of every block, so that the check stays cheap.
constexpr size_t kMostInstructions = 16384;
/// With more EtherTypes in one place, they are no longer distinguished.
constexpr size_t kMostTypes = 8;

/// Contents of the accumulator: a word of an address or its network, the half-word at this offset,
/// or something unknown.
struct Loaded {
  std::optional<AddressPart> part;
  std::optional<uint32_t> halfAt;
  bool operator==(const Loaded&) const = default;
};

/// The possible values of a half-word; nullopt = any.
using Values = std::optional<std::vector<uint32_t>>;

/// What is known about every packet that reaches an instruction.
struct Knowledge {
  bool isReached = false;
  Loaded accumulator;
  /// By the number of VLAN tags before it: the EtherType there, if there are that many tags.
  std::array<Values, kMostAddressTags + 1> etherTypes;
};

bool contains(const std::vector<uint32_t>& values, uint32_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// What is known where two paths meet.
void join(Values& values, const Values& others) {
  if (!values || !others) {
    values.reset();
    return;
  }
  for (const uint32_t value : *others) {
    if (!contains(*values, value)) values->push_back(value);
  }
  if (values->size() > kMostTypes) values.reset();
}

void join(Knowledge& known, const Knowledge& other) {
  if (!known.isReached) {
    known = other;
    return;
  }
  if (known.accumulator != other.accumulator) known.accumulator = {};
  for (size_t tags = 0; tags < known.etherTypes.size(); tags++) {
    join(known.etherTypes[tags], other.etherTypes[tags]);
  }
}

/// The part of an address that all frames with one of these EtherTypes have at this offset.
std::optional<AddressPart> partAt(const std::vector<uint32_t>& etherTypes, uint32_t offset) {
  std::optional<AddressPart> part;
  for (const uint32_t etherType : etherTypes) {
    const auto fields = addressFields(etherType);
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const AddressField& f) { return f.offset == offset; });
    if (field == fields.end() || (part && *part != field->part)) return std::nullopt;
    part = field->part;
  }
  return part;
}

/// As in forEachAddressWord(): which part of an address is at this offset in every such packet.
std::optional<AddressPart> partAt(const Knowledge& known, uint32_t offset) {
  uint32_t typeOffset = kEtherTypeOffset;
  for (const Values& etherTypes : known.etherTypes) {
    if (!etherTypes || offset < typeOffset) return std::nullopt;
    const bool hasTag = std::any_of(etherTypes->begin(), etherTypes->end(), [](uint32_t type) {
      return isVlanTag(static_cast<uint16_t>(type));
    });
    if (!hasTag) return partAt(*etherTypes, offset - typeOffset);
    const bool hasOther = std::any_of(etherTypes->begin(), etherTypes->end(), [](uint32_t type) {
      return !isVlanTag(static_cast<uint16_t>(type));
    });
    if (hasOther) return std::nullopt;
    typeOffset += kVlanTagBytes;
  }
  return std::nullopt;
}

/// What remains of a part of an address with this mask: the smallest network that it identifies and
/// that address tables distinguish.
std::optional<AddressPart> networkOf(std::optional<AddressPart> part, uint32_t mask) {
  if (part != AddressPart::kIpv4) return std::nullopt;
  if (mask == 0xFFFFFFFF) return part;
  if (mask == 0xFFFFFF00) return AddressPart::kIpv4Net24;
  if (mask == 0xFFFF0000) return AddressPart::kIpv4Net16;
  return std::nullopt;
}

/// The values of the half-word in the accumulator if it is an EtherType; else null.
Values* typesIn(Knowledge& known) {
  for (uint32_t tags = 0; tags <= kMostAddressTags; tags++) {
    if (known.accumulator.halfAt == kEtherTypeOffset + tags * kVlanTagBytes) {
      return &known.etherTypes[tags];
    }
  }
  return nullptr;
}

}  // namespace

/// Fills the steps of a condition.
class ConditionFinder {
 public:
  ConditionFinder(std::span<const BpfInstruction> program, AddressCondition& condition)
      : program_(program), steps_(condition.steps_), known_(program.size()) {
    known_[0].isReached = true;
  }

  void run() {
    for (size_t i = 0; i < program_.size(); i++) {
      const auto nowhere = static_cast<uint32_t>(program_.size());
      steps_.push_back({false, nowhere, nowhere, std::nullopt});
      if (known_[i].isReached) step(i);
    }
  }

 private:
  void step(size_t at) {
    const BpfInstruction& in = program_[at];
    Knowledge after = known_[at];
    switch (static_cast<BpfOpcode>(in.code)) {
      case BpfOpcode::kReturnK:
        steps_[at].accepts = in.k != 0;
        return;
      case BpfOpcode::kReturnA:
        steps_[at].accepts = true;
        return;
      case BpfOpcode::kJump:
        steps_[at].onTrue = goTo(at + 1 + in.k, after);
        return;
      case BpfOpcode::kJumpEqualK:
        stepEqual(at, in);
        return;
      case BpfOpcode::kJumpEqualX:
      case BpfOpcode::kJumpGreaterK:
      case BpfOpcode::kJumpGreaterX:
      case BpfOpcode::kJumpNotLessK:
      case BpfOpcode::kJumpNotLessX:
      case BpfOpcode::kJumpSetK:
      case BpfOpcode::kJumpSetX:
        steps_[at].onTrue = goTo(at + 1 + in.jumpTrue, after);
        steps_[at].onFalse = goTo(at + 1 + in.jumpFalse, after);
        return;
      default:
        after.accumulator = loadedBy(in, after);
        steps_[at].onTrue = goTo(at + 1, after);
    }
  }

  /// Contents of the accumulator after an instruction that does not jump.
  static Loaded loadedBy(const BpfInstruction& in, const Knowledge& before) {
    switch (static_cast<BpfOpcode>(in.code)) {
      case BpfOpcode::kLoadWord:
        return {partAt(before, in.k), std::nullopt};
      case BpfOpcode::kLoadHalf:
        return {std::nullopt, in.k};
      case BpfOpcode::kAndK:
        return {networkOf(before.accumulator.part, in.k), std::nullopt};
      case BpfOpcode::kStore:
      case BpfOpcode::kStoreX:
      case BpfOpcode::kLoadXConstant:
      case BpfOpcode::kLoadXMemory:
      case BpfOpcode::kLoadXLength:
      case BpfOpcode::kLoadXHeaderSize:
      case BpfOpcode::kMoveAToX:
        return before.accumulator;
      default:
        return {};
    }
  }

  void stepEqual(size_t at, const BpfInstruction& in) {
    AddressCondition::Step& step = steps_[at];
    Knowledge equal = known_[at];
    Knowledge different = known_[at];
    bool canBeEqual = true;
    bool canDiffer = true;
    if (Values* const types = typesIn(equal)) {
      canBeEqual = !*types || contains(**types, in.k);
      *types = {in.k};
      if (Values& others = *typesIn(different)) {
        std::erase(*others, in.k);
        canDiffer = !others->empty();
      }
    } else if (equal.accumulator.part) {
      step.onTrueOnly = AddressWord{*equal.accumulator.part, in.k};
    }
    if (canBeEqual) step.onTrue = goTo(at + 1 + in.jumpTrue, equal);
    if (canDiffer) step.onFalse = goTo(at + 1 + in.jumpFalse, different);
  }

  uint32_t goTo(size_t to, const Knowledge& known) {
    join(known_[to], known);
    return static_cast<uint32_t>(to);
  }

  const std::span<const BpfInstruction> program_;
  std::vector<AddressCondition::Step>& steps_;
  std::vector<Knowledge> known_;
};

AddressCondition::AddressCondition(const BpfProgram& program) {
  if (program.size() <= kMostInstructions) {
    ConditionFinder(program.instructions(), *this).run();
  } else {
    steps_.push_back({true, 1, 1, std::nullopt});
  }
}

}  // namespace capfleet
