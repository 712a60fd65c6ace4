// Property: for every packet that a program accepts, its address condition holds for a block that
// contains exactly the address words of this packet.
//
// Input: 1 byte; this many instructions of 8 bytes; the packet. Jumps and memory slots of the
// instructions are forced into range, so that most programs are valid.
#include <set>
#include <utility>
#include <vector>

#include "filter/address_condition.h"
#include "filter/bpf_evaluator.h"
#include "fuzz_input.h"

namespace {

constexpr size_t kInstructionBytes = capfleet::kBpfInstructionBytes;

/// This many instructions, followed by a return.
std::vector<uint8_t> takeProgram(capfleet::fuzz::FuzzInput& input) {
  const auto count = static_cast<size_t>(input.take(1));
  std::vector<uint8_t> program((count + 1) * kInstructionBytes);
  for (size_t i = 0; i < count; i++) {
    uint8_t* const at = &program[i * kInstructionBytes];
    for (size_t byte = 0; byte < kInstructionBytes; byte++) {
      at[byte] = static_cast<uint8_t>(input.take(1));
    }
    const size_t after = count - i;
    at[2] = static_cast<uint8_t>(at[2] % after);
    at[3] = static_cast<uint8_t>(at[3] % after);
  }
  program[count * kInstructionBytes] = 0x06;
  program[count * kInstructionBytes + 4] = 1;
  return program;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  capfleet::fuzz::FuzzInput input(std::span(data, size));
  const auto program = capfleet::BpfProgram::parse(takeProgram(input));
  if (!program) return 0;
  const std::span<const uint8_t> packet = input.rest();
  const auto bytes = static_cast<uint32_t>(packet.size());
  std::set<std::pair<capfleet::AddressPart, uint32_t>> words;
  capfleet::forEachAddressWord(packet, [&](capfleet::AddressWord word) {
    words.insert({word.part, word.value});
  });
  const bool mayAccept =
      capfleet::AddressCondition(*program).mayAccept([&](capfleet::AddressWord word) {
        return words.contains({word.part, word.value});
      });
  const bool accepts = capfleet::BpfEvaluator(*program).accepts(packet.data(), bytes, bytes);
  capfleet::fuzz::require(mayAccept || !accepts);
  return 0;
}
