// The BPF filter of a download: machine code if available, else the evaluator.
#pragma once

#include <memory>

#include "filter/bpf_evaluator.h"
#include "filter/bpf_machine_code.h"

namespace capfleet {

/// Immutable after construction, so any number of threads may share one.
class BpfFilter {
 public:
  explicit BpfFilter(const BpfProgram& program)
      : machineCode_(BpfMachineCode::make(program)), evaluator_(program) {}

  /// Works like BpfEvaluator::accepts(). REQUIRES: capturedLength <= kMaxCapturedLength.
  bool accepts(const uint8_t* captured, uint32_t capturedLength, uint32_t originalLength) const {
    if (machineCode_) return machineCode_->accepts(captured, capturedLength, originalLength);
    return evaluator_.accepts(captured, capturedLength, originalLength);
  }

 private:
  const std::unique_ptr<const BpfMachineCode> machineCode_;  ///< null where there cannot be any
  const BpfEvaluator evaluator_;
};

}  // namespace capfleet
