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

  /// Whether there can be segments of which, judging by their addresses and networks alone, no
  /// packet is accepted.
  bool isUseful() const {
    return !mayAccept([](AddressWord) { return false; });
  }

  /// Whether there can be such blocks, judging by the words of their frames alone.
  bool isUsefulForSieves() const {
    return !mayAccept([](AddressWord word) { return !isWordOfFrame(word.part); });
  }

  /// False only if the program accepts no packet of a block whose address words (as found by
  /// forEachAddressWord()) are all among those for which `mayHold(word)` is true.
  template <typename MayHold>
  bool mayAccept(MayHold mayHold) const {
    return mayAcceptOf(1, [&](AddressWord word) { return mayHold(word) ? 1u : 0u; }) != 0;
  }

  /// The same for up to 64 blocks or segments at once, each of which is a bit: those of `all` that
  /// may have a packet that the program accepts. `mayHold(word)` are those that may hold the word.
  template <typename MayHold>
  uint64_t mayAcceptOf(uint64_t all, MayHold mayHold) const {
    std::vector<uint64_t> reached(steps_.size() + 1);
    reached[0] = all;
    uint64_t accepted = 0;
    for (size_t i = 0; i < steps_.size(); i++) {
      const uint64_t here = reached[i] & ~accepted;
      if (here == 0) continue;
      const Step& step = steps_[i];
      if (step.accepts) {
        accepted |= here;
        continue;
      }
      reached[step.onFalse] |= here;
      reached[step.onTrue] |= step.onTrueOnly ? here & mayHold(*step.onTrueOnly) : here;
    }
    return accepted;
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
