// A BPF program as x86-64 machine code. Results equal those of BpfEvaluator, which takes several
// times as long per packet.
#pragma once

#include <cstdint>
#include <memory>

#include "filter/bpf_program.h"

namespace capfleet {

/// Immutable after construction, so any number of threads may share one. Its memory is never
/// writable and executable at the same time.
class BpfMachineCode {
 public:
  /// Null on other CPUs, and if the system provides no executable memory.
  static std::unique_ptr<const BpfMachineCode> make(const BpfProgram& program);
  /// Whether it works on this machine, determined by trying.
  static bool isAvailable();
  ~BpfMachineCode();
  BpfMachineCode(const BpfMachineCode&) = delete;
  BpfMachineCode& operator=(const BpfMachineCode&) = delete;

  /// Works like BpfEvaluator::accepts(). REQUIRES: capturedLength <= kMaxCapturedLength.
  bool accepts(const uint8_t* captured, uint32_t capturedLength, uint32_t originalLength) const {
    return run_(captured, capturedLength, originalLength) != 0;
  }

 private:
  using Function = uint32_t (*)(const uint8_t*, uint32_t, uint32_t);
  BpfMachineCode(void* memory, size_t bytes);

  void* const memory_;
  const size_t bytes_;
  const Function run_;
};

}  // namespace capfleet
