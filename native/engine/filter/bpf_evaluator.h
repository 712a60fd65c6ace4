// Runs a BPF program over packets. Results equal libpcap's bpf_filter().
#pragma once

#include <cstdint>
#include <vector>

#include "filter/bpf_program.h"

namespace capfleet {

/// Immutable after construction, so any number of threads may share one.
class BpfEvaluator {
 public:
  explicit BpfEvaluator(const BpfProgram& program);

  /// Whether the program accepts the packet. A load outside the captured bytes and a division by
  /// zero reject it; `originalLength` is what the program sees as `len`.
  bool accepts(const uint8_t* captured, uint32_t capturedLength, uint32_t originalLength) const;

 private:
  /// An instruction with its handler resolved and its jumps made absolute.
  struct Step {
    uint32_t handler;  ///< an index into the table of handlers
    uint32_t k;
    uint32_t onTrue;  ///< index of the step to go to; also of an unconditional jump
    uint32_t onFalse;
  };
  std::vector<Step> steps_;
};

}  // namespace capfleet
