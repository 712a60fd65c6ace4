// What a filter requires of the addresses in a block, derived from the filter's program: for a
// packet to be accepted, execution must get from the program's start to an accepting return, and
// some of its jumps are only taken if an address of the packet equals a constant.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "filter/bpf_program.h"
#include "packet/address_words.h"

namespace capfleet {

/// Necessary for a program to accept some packet of a block, seldom sufficient. Anything in the
/// program that it does not understand is assumed to be possible. Immutable.
class AddressCondition {
 public:
  explicit AddressCondition(const BpfProgram& program);

  /// Whether there can be blocks of which, judging by their addresses alone, no packet is accepted.
  bool isUseful() const {
    return !mayAccept([](AddressWord) { return false; });
  }

  /// False only if the program accepts no packet of a block whose address words (as found by
  /// forEachAddressWord()) are all among those for which `mayHold(word)` is true.
  template <typename MayHold>
  bool mayAccept(MayHold mayHold) const {
    std::vector<bool> isReached(steps_.size() + 1);
    isReached[0] = true;
    for (size_t i = 0; i < steps_.size(); i++) {
      if (!isReached[i]) continue;
      const Step& step = steps_[i];
      if (step.accepts) return true;
      isReached[step.onFalse] = true;
      if (!step.onTrueOnly || mayHold(*step.onTrueOnly)) isReached[step.onTrue] = true;
    }
    return false;
  }

 private:
  /// An instruction of the program, and its possible successors.
  struct Step {
    bool accepts = false;
    uint32_t onTrue;  ///< steps_.size() when it cannot
    uint32_t onFalse;
    std::optional<AddressWord> onTrueOnly;  ///< what a packet must contain to continue there
  };
  friend class ConditionFinder;

  std::vector<Step> steps_;
};

}  // namespace capfleet
