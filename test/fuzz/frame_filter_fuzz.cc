// Property: over any packet each condition of a FrameFilter holds exactly when its opposite does
// not, a list holds when one of its values does, and a filter holds when all its conditions do.
//
// Input: 4 bytes NIC time in seconds, 1 byte capture port, 1 byte that were not captured, 1 byte
// number of conditions; for each 1 byte field, 1 byte kind, 1 byte number of values, 2 bytes a
// value; then the packet.
#include <algorithm>
#include <vector>

#include "filter/frame_filter.h"
#include "fuzz_input.h"

namespace {

using capfleet::FrameCondition;
using capfleet::FrameField;
using capfleet::FrameFilter;
using capfleet::PacketView;
using capfleet::fuzz::require;

constexpr uint64_t kFields = 5;
static_assert(static_cast<uint64_t>(FrameField::kC3550SourcePort) == kFields - 1);

FrameCondition takeCondition(capfleet::fuzz::FuzzInput& input) {
  FrameCondition condition{static_cast<FrameField>(input.take(1) % kFields), false, {}};
  condition.excludes = input.take(1) % 2 != 0;
  const uint64_t count = 1 + input.take(1) % 4;
  for (uint64_t i = 0; i < count; i++) {
    condition.values.push_back(static_cast<uint32_t>(input.take(2)));
  }
  return condition;
}

bool holds(const FrameCondition& condition, const PacketView& packet) {
  return FrameFilter({condition}).accepts(packet);
}

void checkCondition(const FrameCondition& condition, const PacketView& packet) {
  FrameCondition opposite = condition;
  opposite.excludes = !condition.excludes;
  require(holds(condition, packet) != holds(opposite, packet));
  bool hasOne = false;
  for (const uint32_t value : condition.values) {
    hasOne = hasOne || holds({condition.field, false, {value}}, packet);
  }
  require(holds(condition, packet) == (hasOne != condition.excludes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  capfleet::fuzz::FuzzInput input(std::span(data, size));
  const auto nicNs = static_cast<int64_t>(input.take(4)) * 1'000'000'000;
  const auto port = static_cast<uint32_t>(input.take(1));
  const auto cutBytes = static_cast<uint32_t>(input.take(1));
  std::vector<FrameCondition> conditions;
  for (uint64_t count = input.take(1) % 4; count > 0; count--) {
    conditions.push_back(takeCondition(input));
  }
  const std::span<const uint8_t> bytes = input.rest();
  const PacketView packet{bytes, static_cast<uint32_t>(bytes.size()) + cutBytes, nicNs, 1, 0, port};
  for (const FrameCondition& condition : conditions) checkCondition(condition, packet);
  const bool isAccepted = std::all_of(conditions.begin(), conditions.end(),
                                      [&](const auto& one) { return holds(one, packet); });
  require(FrameFilter(conditions).accepts(packet) == isAccepted);
  return 0;
}
